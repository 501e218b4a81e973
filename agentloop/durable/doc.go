// Package durable keeps durable streams: streams of bytes, or of JSON messages, that are no
// sessions. Each is a log of its own, with an id that no session can have, so that durability,
// fencing, backup, erasure, retention and quotas are those of sessions.
//
// A request is one record: what it appends, which request of which producer it is, and whether
// it closes the stream. The log's comparison puts requests in one order, so a repetition finds
// what it repeats, on any node and after any crash. The state of a stream (projector/durable) is
// a fold of the log, and package snapshot keeps it.
//
// A fork does not copy. It names its source and where it leaves it, and its source knows it:
// a stream that is deleted while it has forks remains for them, and goes with the last one. A
// fork is announced to its source before it is created, and until then for [pending] counts as
// one that exists.
package durable
