// Command helixd runs AI agents and keeps their sessions in a durable log.
//
// helixd --help and docs/reference/commands.md list the commands. Most of them are in
// internal/cli; serve is in internal/daemon.
//
// The commands that read work against a daemon (--server URL) or directly on
// NATS (--nats URL). Results go to stdout, as text or, with --json, as stable
// JSON; logs and errors go to stderr. This package only wires the others.
package main
