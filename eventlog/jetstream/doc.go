// Package jetstream is the eventlog.Log on NATS JetStream.
//
// # Where things lie
//
// Records of session S are messages on helix.log.<p>.<S> in stream
// HELIX_LOG_<p>; p is a hash of S modulo the number of partitions. If the log
// has grown, a session that was there before stays where the number of that time put it; tables of these
// are on helix.places.<growth>.<i> in HELIX_PLACES, see [layout.Places], beside how far that growth is, see internal/streams. S is percent-encoded but for
// [A-Za-z0-9_-]. A message's payload is the record's JSON; its envelope is
// one header, H, see wire.HeaderEnvelope. Messages of older versions have the headers
// Helix-Kind, -Type, -Agent, -Run, -Call, -Writer and -Ordinal in place of it,
// values percent-encoded where they are not plain ASCII. An imported record
// has Helix-Origin-Sequence and -Origin-Time, too. A payload over 256 KiB is in
// parts on helix.blob.<p>.<S>.<hash>.<i> in HELIX_BLOBS, and the message has
// a placeholder and its address in Helix-Blob; the parts name in Helix-After the
// record after which they were stored.
//
// Segments are messages on helix.seg.<p>.<S> in HELIX_SEG_<p>: up to 200
// successive records of the session, unchanged, with their sequences, in columns
// that are compressed, see segment.pack. Segments of older versions hold the records
// one after the other.
// A session is sealed in the background when it has so many, or 512 KiB, and,
// from 16 on, when a run or the stream ends or pauses or nothing came for half
// a minute. Each segment names the ones before, so that any of them is found
// from the last.
//
// # How reads are complete
//
// Every record names its predecessor: JetStream keeps the comparison that the
// record was appended with, and what was appended together lies together. So a
// reader takes from segments what they have, goes on in the log, and knows at
// each record whether it is the next one. A record that is missing in the log
// is looked for in the segments: a purge leaves it there. If it is nowhere, the
// read fails. A head that only a segment has is still a head: an append behind
// it finds nothing to compare with in the log, asks the segments, and compares
// with "nothing". Purges leave alone what was sealed within the hour, so that
// this can't be overtaken.
//
// # The order of what happens to a session's bytes
//
// A session id goes through these states. Several nodes may act on it at once, and
// each may be slow; comparisons of the server and the order below keep them apart.
//
//	free     no message in the log, no segment. An append that expects 0 creates
//	         the session: its comparison is with "nothing".
//	live     appends, each compared with the one before. Sealing copies records to
//	         segments, a purge removes from the log what segments have held for an hour,
//	         a trim removes segments.
//	fenced   the last message is the fact erased. No append succeeds, the session is
//	         not found, and nobody can create it.
//	free     the fence is gone, which goes last.
//
// Sequences are never given again. So a fence separates what was before it from what
// comes after: an eraser removes records up to its own fence and nothing else, however
// late it is. It decides by what a message holds, not by its place in the stream:
//
//   - Records: their sequence. Segments and floors: the last sequence in them; they are
//     removed in order until none is found, after the records and before the fence.
//   - Blobs: those that were there while the fence was. So a record relies on a blob
//     only if that was stored after the last fence, see store.Store.
//
// A message that is compared with "nothing" could be stored after an erasure. The node that
// stored a segment or a floor looks again, for the fence first and then for the records
// that the message relies on, and removes the message if they are gone. The node may die
// before that, and it gives up on an append that is not answered. So the mark of an erasure,
// which names its fence, stays for an hour after the end. A node that reads one of these
// compares it with that fence, and removes it if it is late:
//
//   - The first segment, or the first floor, of a session: are its records older than the
//     fence? Later ones are compared with the one before, which the erasure has removed.
//     Besides, a segment is stored only if its first record follows the last segment, and
//     floors never fall.
//   - An append that creates a session with large payloads: it carries Helix-Since, the log's
//     last sequence before they were stored. Is the fence between that and the record? The
//     erasure may have taken the payloads. Others that create a session rely on nothing.
//     A node looks at the record that it appends after if it has neither appended that
//     nor found it as the head.
//   - An append after a purged record: it carries Helix-Sealed, the last record of the
//     segments that it follows. If no segment reaches there, it is late.
//
// Before a mark goes, the session is looked at once more. No request may be under way for
// longer than the hour.
//
// A reader or follower that has a record goes on only to the one that names it. If that
// can't be found because the session was erased, created again or not, the error is
// ErrSessionNotFound.
//
// A purge takes the log's own word for age: an operation that hangs for an hour between a
// look and an append may act on what is not so any more.
//
// The streams of a log are created together, before the first record. If one is missing
// and another one has been in use, the log does not open, since what is left may be the
// only copy. If segments hold more than the log, they are removed only where a
// power loss explains it: one server that does not sync at each append, and records of no
// longer than two intervals and a minute.
//
// TestLifecycle holds two nodes at each request and interleaves all this by a seed.
//
// # Far apart
//
// A server that is asked for a subject's next message behind a sequence walks
// every block of the stream up to it, and loads each whose index of subjects it
// has let go of, which it does after two minutes: 8 MiB, which in the segments'
// stream is decompressed first. A batch also counts what is pending, and walks for that,
// too. For a session that waited for days those are all the blocks that the others
// have filled since, and whatever else comes over that connection waits.
//
// What is asked for by its sequence costs its own block. So what may lie far
// apart is asked for so: each segment is named by the last one, and each record
// of the log by the one behind it, from the head on. What is not yet sealed is
// little, or a page of it is taken from behind and the rest by subject. Only an
// erasure, which rewrites blocks anyway, walks.
//
// BenchmarkReadAcrossManyBlocks, one run, 600 MB of others' records in between, the
// server just started: the last records of a session in 20 sealed pieces cost
// 273 MiB of allocations in place of 1,746, all of it 486 in place of 1,888.
//
// # Erasure
//
// A mark on helix.erased.<p>.<S> says how far an erasure is, from before its fence to
// its end: wanted, fenced, removed, done. Any node that finds it continues. It has the
// last sequence to remove of each stream, so that a session of the same id that was
// created since loses nothing. Each node calls [Log.FinishErasures] now and then.
//
// To remove is not to overwrite. A server overwrites one message by rewriting its
// block, 10 ms each; and a replica that catches up learns which messages are gone,
// not that they were to be overwritten. With Options.Server messages are removed as
// any other, in one request where they are close together, and the node has the bytes
// overwritten in its own files. From compressed streams, which segments are on one
// replica, and without Options.Server, the servers overwrite them one by one.
//
// A server that overwrites a message first stores that it is deleted. If it is killed
// in between, nobody finds the message after the restart, and its bytes are still
// there. An embedded server overwrites them when it starts. An outside server keeps
// them until it removes or compacts the block.
//
// # Live
//
// After a message is stored the server republishes it, or the log publishes it, on
// helix.live.<S> with
// Nats-Sequence and Nats-Last-Sequence, so that any NATS client can follow a
// session with a plain subscription. Nobody but the server may publish there:
// followers believe what continues what they have, and read the log only where
// it does not.
//
// A follower notices a lost live record when the next one names it. For a last
// record, each partition's leader is asked every 750 ms for its last sequence, if
// some session in it is followed and was silent meanwhile; only if that has moved,
// one request for every 200 of those sessions asks for what is newer.
//
// # One sync for many
//
// An embedded server that is alone may answer before what it has stored is on the disk
// (embed.Options.GroupSync). Then the log waits after each answer for a sync, which all
// that wait share, before it acknowledges an append or hands a message to a reader; with a
// sync interval it does not wait. The server republishes nothing, so of a delta it stores
// only what the envelope does not tell, see eventlog.Entry.ShortDelta. The log hands an append to its own followers, typed, and
// publishes it if others listen. No atomic batch gathers the appends of several sessions:
// each is a publish of its own, which the server does not stage in a file.
//
// # Contention
//
// Every record names its predecessor because every append is a comparison, and
// that is also what fences writers and erasures and makes a retry exactly-once. So
// commands compare, too. A caller that loses a comparison asks all nodes on
// helix.node.hold.<S> to hold other appends to the session, for at most a second,
// catches up and appends. While several servers replicate an append to a session
// they refuse to compare (error 10164); the loser reads the head, and tries again
// within 2 ms if that is still the expected one.
//
// # What it does not promise
//
// Where the server republishes, a follower may see a record that a power loss then
// undoes. A sealed record has the time of its acknowledgement where the node
// that sealed it also wrote it, else the server's; they differ by how long the
// append took.
package jetstream
