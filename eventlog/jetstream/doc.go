// Package jetstream is the eventlog.Log on NATS JetStream.
//
// # Where things lie
//
// Records of session S are messages on helix.log.<p>.<S> in stream
// HELIX_LOG_<p>; p is a hash of S modulo the number of partitions, which is
// fixed when the streams are created. S is percent-encoded but for
// [A-Za-z0-9_-]. A message's payload is the record's JSON; its envelope is
// the headers Helix-Kind, -Type, -Agent, -Run, -Call, -Writer and -Ordinal,
// values percent-encoded where they are not plain ASCII. An imported record
// has -Origin-Sequence and -Origin-Time, too. A payload over 256 KiB lies in
// parts on helix.blob.<p>.<S>.<hash>.<i> in HELIX_BLOBS, and the message has
// a placeholder and its address in Helix-Blob.
//
// Segments are messages on helix.seg.<p>.<S> in HELIX_SEG_<p>: up to 200
// successive records of the session, packed, unchanged, with their sequences.
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
// # Live
//
// After a message is stored the server republishes it on helix.live.<S> with
// Nats-Sequence and Nats-Last-Sequence, so that any NATS client can follow a
// session with a plain subscription. Nobody but the server may publish there:
// followers believe what continues what they have, and read the log only where
// it does not.
//
// # What it does not promise
//
// In a batched fsync mode a follower may see a record that a power loss then
// undoes. A sealed record has the time of its acknowledgement where the node
// that sealed it also wrote it, else the server's; they differ by how long the
// append took.
package jetstream
