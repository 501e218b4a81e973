// Package eventlog is the durable log of agent sessions: what its records
// are, and what a log promises.
//
// A session tree (a root session and its sub-agents) has one log, and the log
// is the only truth about it. A record is a [Chunk] of the public stream
// (document 000) or a [Fact] beside it; both share one order. Its sequence is
// every reader's cursor.
//
// What a [Log] promises:
//
//   - One order. Sequences rise over the whole session, have gaps and are
//     never used again.
//   - Acked is durable, as [Info] says, and once: see [Writer], where order,
//     fencing and exactness are explained.
//   - All or none. The records of one append are all in the log or none is.
//   - Complete reads. A read reaches the head that the leader had when it
//     began, or it ends with an error; a gap is never silent.
//   - Nothing is deleted in passing. A [Truncated] fact strikes records from
//     the effective stream ([Effective]); raw reads still show them.
//
// What it does not promise: that a follower of a log whose server publishes live records
// sees only what a power loss keeps, or that the bytes of one replica are
// repaired.
//
// Writers are strict: [EncodeChunk] and [ParseChunk] refuse what document 000
// does not allow and name the field. Readers are tolerant: [DecodeChunk]
// keeps what it does not know, byte for byte, since a log outlives its
// readers' versions.
//
// Subfolders: jetstream is the log on NATS JetStream, memory its twin for
// tests, logtest the contract suite that both pass.
package eventlog
