package inspect

// Commands are the commands that look at sessions.
type Commands struct {
	Tail        tailCmd        `cmd:"" group:"look" help:"Follow a session's stream until it ends."`
	Sessions    sessionsCmd    `cmd:"" group:"look" help:"List sessions."`
	Runs        runsCmd        `cmd:"" group:"look" help:"List runs of all sessions, newest first."`
	Usage       usageCmd       `cmd:"" group:"look" help:"Sum usage and cost, by agent, model, user or day."`
	Search      searchCmd      `cmd:"" group:"look" help:"Find messages and tool calls by their words."`
	Parked      parkedCmd      `cmd:"" group:"look" help:"List the records that could not be used."`
	State       stateCmd       `cmd:"" group:"look" help:"Show a session's folded state."`
	Records     recordsCmd     `cmd:"" group:"look" help:"Show a session's records with their envelopes."`
	Diff        diffCmd        `cmd:"" group:"look" help:"Show the changes between two points of a session."`
	Compare     compareCmd     `cmd:"" group:"look" help:"Show two points side by side, of one session or of two."`
	Replay      replayCmd      `cmd:"" group:"look" help:"Show a session's stream again, at the pace of its records."`
	Checkpoints checkpointsCmd `cmd:"" group:"look" help:"List a session's checkpoints, oldest first."`
	Files       filesCmd       `cmd:"" group:"look" help:"List the files in a session's workspace."`
	Audit       auditCmd       `cmd:"" group:"look" help:"List who has done what to a session, and from which request."`
	Export      exportCmd      `cmd:"" group:"look" help:"Write all records of a session, one a line, for import elsewhere."`
}
