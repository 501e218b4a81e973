package control

// Talk are the commands that run agents.
type Talk struct {
	Run       runCmd       `cmd:"" group:"talk" help:"Start a session and show its run: text, tools, approvals."`
	Chat      chatCmd      `cmd:"" group:"talk" help:"Talk to an agent, in as many turns as you like."`
	Say       sayCmd       `cmd:"" group:"talk" help:"Send a message, which begins a session's next turn."`
	Approve   approveCmd   `cmd:"" group:"talk" help:"Approve a tool call that waits, and continue the run."`
	Deny      denyCmd      `cmd:"" group:"talk" help:"Deny a tool call that waits, and continue the run."`
	Answer    answerCmd    `cmd:"" group:"talk" help:"Answer a client's tool that waits, and continue the run."`
	Resume    resumeCmd    `cmd:"" group:"talk" help:"Continue a session in a new run."`
	Interrupt interruptCmd `cmd:"" group:"talk" help:"Interrupt a run, which can be resumed."`
	Abort     abortCmd     `cmd:"" group:"talk" help:"Abort a run for good."`
}

// Commands are the commands that change sessions and memories.
type Commands struct {
	Append   appendCmd   `cmd:"" group:"change" help:"Append chunks of an outside producer to a session."`
	Import   importCmd   `cmd:"" group:"change" help:"Create a session from exported records."`
	Fork     forkCmd     `cmd:"" group:"change" help:"Create a session from another session's past."`
	Rollback rollbackCmd `cmd:"" group:"change" help:"Take a session back to an earlier point."`
	Erase    eraseCmd    `cmd:"" group:"change" help:"Erase a session, every byte of it."`
	Memories memoriesCmd `cmd:"" group:"memories" help:"Look at what agents remember, and change it."`
}
