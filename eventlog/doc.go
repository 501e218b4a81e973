// Package eventlog is the durable log of agent sessions: what its records
// are, and what a log promises.
//
// A session tree (a root session and its sub-agents) has one log, and the log is the only
// truth about it. A record is a [Chunk], which clients see, or a [fact.Fact], which only the log
// needs; both share one order. Readers use a record's sequence as their cursor.
// docs/reference/protocol.md lists all chunks and facts.
//
// What a [Log] promises:
//
//   - One order. Sequences rise over the whole session, have gaps and are
//     never used again.
//   - Acknowledged records are durable, as [Info] says, and are there once. [Writer]
//     explains order, fencing and retries.
//   - All or none. The records of one append are all in the log or none is.
//   - Complete reads. A read reaches the head that the leader had when it
//     began, or it ends with an error; a gap is never silent.
//   - Appends delete nothing. A [Truncated] fact hides records from
//     the effective stream ([Effective]); raw reads still show them.
//
// A log does not promise that a follower sees only records that survive a power loss, if
// the server publishes records before they are synced; nor that a damaged replica is
// repaired.
//
// Writers are strict: [EncodeChunk] and [ParseChunk] refuse what the protocol
// does not allow, and name the field. Readers are tolerant: [DecodeChunk]
// keeps an unknown type byte for byte, since a log outlives the versions of its readers.
//
// Subfolders: jetstream is the log on NATS JetStream, memory is a log for
// tests, logtest the contract suite that both pass.
package eventlog
