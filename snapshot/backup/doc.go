// Package backup writes everything that a log holds to one file, and reads it
// back.
//
// # What a backup is of
//
// One moment. First the end of each partition is looked at; then every session
// is copied up to there and not further, while others write on. So a session has
// all of its records of that moment and none after it, at the sequences and with
// the times, envelopes and bytes that they have in the log. Large payloads are
// in their records. Of a session whose beginning retention has removed there are
// also the saved folds, which alone know its state. All other folds, and the list
// of the trees that have work, follow from the records: a restore makes them again.
//
// A session that is erased before it is copied is left out as a whole. One that
// is erased, or trimmed, while it is copied ends the backup with [ErrChanged].
//
// # The file
//
// Lines of JSON, compressed with Zstandard, so that any tool reads them: a
// header, for each session its id, folds, records and their number, at last the
// number of all. Behind that, in a frame which Zstandard skips, is the SHA-256 of
// everything before it. A file that was cut, or of which a bit differs, is not a
// backup: [ErrDamaged]. It is neither signed nor encrypted: a person who can write the file
// can write any record.
//
// Neither side holds more than one record, or one saved fold, at a time.
package backup
