// Package jetstream is the eventlog.Log on NATS JetStream.
//
// Records of session S are messages on helix.log.<p>.<S> in stream
// HELIX_LOG_<p>; p is a hash of S modulo the number of partitions, which is
// fixed when the streams are created. S is percent-encoded but for
// [A-Za-z0-9_-]. A message's payload is the record's JSON; its envelope is
// the headers Helix-Kind, -Type, -Agent, -Run, -Call, -Writer and -Ordinal,
// values percent-encoded where they are not plain ASCII.
//
// After a message is stored the server republishes it on helix.live.<S> with
// Nats-Sequence and Nats-Last-Sequence, so that any NATS client can follow a
// session with a plain subscription. Nobody but the server may publish there:
// followers believe what continues what they have, and read the log only where
// it does not.
//
// In a batched fsync mode a follower may see a record that a power loss then
// undoes.
package jetstream
