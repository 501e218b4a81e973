// Package jetstream is the eventlog.Log on NATS JetStream.
//
// [Open] returns a [Log] on a connection; the server may be embedded, alone or in a cluster.
// An acknowledged append is as durable as the log's Info states. A read yields all records of
// a session in order, or fails: it never skips one. An erasure removes every byte of a session
// that a node can reach, and says if some are left. The packages in internal do the work;
// packages doctor and restore are for operators. This page explains what several of them
// depend on.
//
// # Storage layout
//
// The records of session S are messages on helix.log.<p>.<S> in stream HELIX_LOG_<p>, where p
// is a hash of S modulo the number of partitions. S is percent-encoded except for
// [A-Za-z0-9_-]. If the log has grown, a session that existed before stays in the partition
// that the earlier number gave it. The tables of these sessions are on
// helix.places.<growth>.<i> in HELIX_PLACES, see [layout.Places]; so is the progress of each
// growth, see internal/streams.
//
// A message's payload is the record's JSON. Its envelope is one header, H, see
// wire.HeaderEnvelope. Messages of older versions have the headers Helix-Kind, -Type, -Agent,
// -Run, -Call, -Writer and -Ordinal instead, with values percent-encoded where they are not
// plain ASCII. An imported record also has Helix-Origin-Sequence and -Origin-Time. A payload
// over 256 KiB is a blob: it is in parts on helix.blob.<p>.<S>.<hash>.<i> in HELIX_BLOBS. Its
// message has a placeholder, and the blob's address in Helix-Blob. The parts name, in
// Helix-After, the record after which they were stored.
//
// Segments are messages on helix.seg.<p>.<S> in HELIX_SEG_<p>: up to 200 successive records of
// the session, unchanged, with their sequences, in compressed columns, see Segment.Pack of
// internal/wire. Segments of older versions have the records one after the other. A session is
// sealed in the background when it has 200 unsealed records, or 512 KiB. From 16 records on it
// is also sealed when a run or the stream ends or pauses, or after half a minute without an
// append. Each segment names the ones before it, so that any of them is found from the last.
//
// # Complete reads
//
// Every record names its predecessor: JetStream stores the comparison with which the record
// was appended, and the records of one append have successive sequences. So a reader takes
// records from segments, continues in the log, and knows at each record whether it is the next
// one. If a record is missing in the log, the reader looks in the segments, since a purge
// leaves it there. If it is in neither, the read fails.
//
// A head that only a segment has is still a head. An append after it finds no message in the
// log to compare with; it then checks the segments and compares with "nothing". Purges leave
// records alone that were sealed within the last hour, so that no purge can overtake such an
// append.
//
// # The order of changes to a session's bytes
//
// A session id goes through these states. Several nodes may act on it at once, and each may be
// slow; the server's comparisons and the order below keep them apart.
//
//	free        There is no message in the log, and no segment. An append that expects 0
//	            creates the session: it compares with "nothing".
//	live        There are appends, each compared with the one before. Sealing copies records
//	            to segments. A purge removes records from the log that segments have had for
//	            an hour. A trim removes segments.
//	tombstoned  The last message is the fact erased, the tombstone. No append succeeds, the
//	            session is not found, and no node can create it.
//	free        The tombstone is removed, as the last message.
//
// A sequence is never used again. So a tombstone separates the records before it from those after
// it: an erasure removes records up to its own tombstone and nothing else, however late it is. It
// decides by a message's content, not by its place in the stream:
//
//   - Records: by their sequence. Segments and floors: by the last sequence in them. They are
//     removed in order until none is found, after the records and before the tombstone.
//   - Blobs: those that exist while the tombstone does. So a record relies on a blob only if the
//     blob was stored after the last tombstone, see AppendBlob of internal/store.
//
// A message that is compared with "nothing" could be stored after an erasure. So the node that
// stored a segment or a floor checks again, first for the tombstone and then for the records that
// the message relies on, and removes the message if they are gone. But the node may die before
// that, and it gives up on an append that is not answered. So the mark of an erasure, which
// names its tombstone, stays for an hour after the end. A node that reads one of the following
// messages compares it with that tombstone, and removes it if it is late:
//
//   - The first segment, or the first floor, of a session: it is late if its records are older
//     than the tombstone. Later segments and floors are compared with the one before, which the
//     erasure has removed. Besides, a segment is stored only if its first record follows the
//     last segment, and floors never fall.
//   - An append that creates a session with blobs: its header Helix-Since has the log's last
//     sequence before they were stored. It is late if the tombstone is between that and the record,
//     since the erasure may have removed the blobs. Other appends that create a session rely on
//     nothing. Before a node appends after a record that it has neither appended nor found as
//     the head, it checks that record.
//   - An append after a purged record: its header Helix-Sealed has the last record of the
//     segments that it follows. It is late if no segment reaches that record.
//
// Before a mark is removed, the session is checked once more. No request may be under way for
// longer than the hour.
//
// A reader or follower that has a record continues only with the one that names it. If that one
// can't be found because the session was erased, whether created again or not, the error is
// ErrSessionNotFound.
//
// A purge trusts the age that the log states. If an operation hangs for an hour between a check
// and its append, it may act on a state that has changed.
//
// The streams of a log are created together, before the first record. If one is missing and
// another one has been in use, the log does not open, since what is left may be the only copy.
// If segments have records that the log lacks, they are removed only where a power loss
// explains it: on one server that does not sync at each append, and for records that span no
// more than two sync intervals and a minute.
//
// TestLifecycle holds two nodes at each request and interleaves all of this by a seed.
//
// # Records far apart
//
// If a server is asked for a subject's next message after a sequence, it walks every block of
// the stream up to that message. It loads each block of 8 MiB whose index of subjects it has
// dropped, which it does after two minutes; in the stream of segments it also decompresses the
// block. A batched request also counts the pending messages, and walks for that, too. For a
// session that has waited for days, those are all the blocks that other sessions have filled
// since, and all other traffic on that connection waits.
//
// A request by sequence costs one block. So records that may be far apart are read that way:
// the last segment names each segment, and each record of the log is named by its successor,
// from the head on. Unsealed records are few, or one page of them is read backwards and the
// rest by subject. Only an erasure walks, which rewrites blocks anyway.
//
// BenchmarkReadAcrossManyBlocks, one run, 600 MB of other sessions' records in between, the
// server just started: the last records of a session in 20 sealed pieces cost 273 MiB of
// allocations instead of 1,746; all of its records cost 486 instead of 1,888.
//
// # Erasure
//
// A mark on helix.erased.<p>.<S> states the progress of an erasure from before its tombstone to its
// end: wanted, tombstoned, removed, done. Any node that finds it continues the erasure. It names
// the last sequence to remove from each stream, so that a session that was created since with
// the same id loses nothing. Each node calls [Log.FinishErasures] regularly.
//
// Removing is not overwriting. To overwrite one message, a server rewrites its block, which
// takes 10 ms. And a replica that catches up receives which messages are gone, not that they
// must be overwritten. With Options.Server, messages are removed like any others, in one request
// where they are close together, and the node has their bytes overwritten in its own files.
// From compressed streams, which segments are in on one replica, and without Options.Server,
// the servers overwrite them one by one.
//
// A server that overwrites a message first stores that it is deleted. If it is killed in
// between, the message is not found after the restart, but its bytes are still there. An
// embedded server overwrites them when it starts. An outside server keeps them until it removes
// or compacts the block.
//
// # Live records
//
// After a message is stored, the server republishes it, or the log publishes it, on
// helix.live.<S> with the headers Nats-Sequence and Nats-Last-Sequence, so that any NATS client
// can follow a session with a plain subscription. No one else may publish there: a follower
// trusts a record that follows the last one it has, and reads the log only if one does not.
//
// A follower notices a lost live record when the next one names it. For a lost last record,
// each partition's leader is asked every 750 ms for its last sequence, if a session in it is
// followed and was silent meanwhile. Only if that has moved, one request for every 200 of those
// sessions asks for newer records.
//
// # Group sync
//
// An embedded server that is alone may answer before it has synced what it stored
// (embed.Options.GroupSync). After each answer the log then waits for a sync, which all waiting
// requests share, before it acknowledges an append or gives a message to a reader; with a sync
// interval it does not wait. The server republishes nothing, so of a delta it stores only what
// the envelope does not contain, see eventlog.Entry.ShortDelta. The log gives an append to its
// own followers, decoded, and publishes it if there are other subscribers. Appends of one
// record are published separately, because the server stages a batch in a file. Appends of
// several records, which are batches anyway, share one as soon as two wait.
//
// # Contention
//
// Every record names its predecessor because every append is a comparison. The comparison
// also fences writers and erasures, and makes a retry exactly-once. So commands compare, too.
// A caller that loses a comparison asks all nodes, on helix.node.hold.<S>, to hold other
// appends to the session for at most a second; it catches up and appends. While several
// servers replicate an append to a session, they refuse to compare (error 10164); the refused
// caller reads the head, and tries again within 2 ms if that is still the expected one.
//
// # Not promised
//
// Where the server republishes, a follower may see a record that a power loss then undoes. A
// sealed record has the time of its acknowledgement if the node that sealed it also wrote it,
// otherwise the server's; the difference is the duration of the append.
package jetstream
