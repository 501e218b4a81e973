// Package live passes live records to followers. A node has one subscription per followed
// session, however many followers there are. Each follower receives every record once and
// in order: it notices a lost live record and reads it from the log. A slow follower
// never delays others; it also reads from the log.
package live
