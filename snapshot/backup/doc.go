// Package backup writes the content of a log to one file, and restores it.
//
// # Content of a backup
//
// A backup is the log at one moment. It first reads the end of each partition; then it
// copies every session up to that end, while writers continue. So a session has all of
// its records of that moment and none after it, with the sequences, times, envelopes and
// bytes that they have in the log. Large payloads are in their records. For a session
// whose beginning retention has removed, the backup also has the saved folds, which alone
// have its state; without a state of the session it fails. A restore computes all other folds, and the list of session trees with
// work, from the records.
//
// After the sessions, it has what is stored beside the log, see [Beside]: files of
// workspaces, revoked rights, what tenants have spent. It reads that later than the log's
// end: a file may be newer than the session's records, and none that they name is missing.
//
// A session that is erased before it is copied is left out. If a session is erased or
// trimmed while it is copied, the backup ends with [ErrChanged].
//
// # File format
//
// The file is lines of JSON, compressed with Zstandard, so that any tool reads them: a
// header; for each session its id, folds, records and their number; at the end the total
// number. After that come frames which Zstandard skips: if anything is stored beside the
// log, frames whose contents together are lines of JSON, compressed in the same way; the
// last one is the SHA-256 of everything before it. If a file is truncated or a bit differs, it is not a backup: [ErrDamaged].
// It is neither signed nor encrypted: a person who can write the file can write any
// record.
//
// Neither Take nor Read has more than one record, or one saved fold, in memory at a time.
package backup
