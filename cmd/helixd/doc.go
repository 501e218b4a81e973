// Command helixd runs AI agents and keeps their sessions in a durable log. Its main
// commands, of which helixd --help lists all:
//
//	helixd dev                    everything in one process, with demo agents
//	helixd serve --config FILE    the daemon
//	helixd run AGENT MESSAGE      start a session, and show its run
//	helixd chat AGENT             talk to an agent
//	helixd say, resume            continue a session
//	helixd approve, deny, answer  answer a call that waits
//	helixd interrupt, abort       stop a run
//	helixd tail SESSION           follow a session's stream
//	helixd sessions               list sessions
//	helixd runs, usage            runs of all sessions, and what they used (daemon only)
//	helixd search WORDS           messages and tool calls with these words (daemon only)
//	helixd parked                 records that could not be used (daemon only)
//	helixd state SESSION          the folded state, at any sequence
//	helixd records SESSION        every record of the log, with its envelope
//	helixd append SESSION [FILE]  append an outside producer's chunks (daemon only)
//	helixd export SESSION         every record, for import into another deployment
//	helixd import [FILE]          a new session of exported records
//	helixd erase SESSION --yes    every byte of a session, for good
//	helixd retain                 remove old records from the log, or for good
//	helixd backup --out FILE      everything, as of one moment, while it is in use
//	helixd restore FILE           a deployment of a backup
//	helixd verify [SESSION...]    look for damage in the store, or in a backup
//	helixd doctor                 look at the deployment and say what to change
//	helixd healthy                ask a daemon whether it takes work
//	helixd reload                 have a daemon read its agents and tokens again
//	helixd version
//
// The commands that read work against a daemon (--server URL) or directly on
// NATS (--nats URL). Results go to stdout, as text or, with --json, as stable
// JSON; logs and errors go to stderr. This package only wires the others.
package main
