package control

// Commands are the commands that change sessions and memories.
type Commands struct {
	Append   appendCmd   `cmd:"" group:"change" help:"Append chunks of an outside producer to a session."`
	Import   importCmd   `cmd:"" group:"change" help:"Create a session from exported records."`
	Fork     forkCmd     `cmd:"" group:"change" help:"Create a session from another session's past."`
	Rollback rollbackCmd `cmd:"" group:"change" help:"Take a session back to an earlier point."`
	Erase    eraseCmd    `cmd:"" group:"change" help:"Erase a session, every byte of it."`
	Memories memoriesCmd `cmd:"" group:"memories" help:"Look at what agents remember, and change it."`
}
