// Package cohort writes recorded sessions to a file that stands alone, and reads it.
//
// # File format
//
// The file is lines of JSON in UTF-8. The first line is the [Header]; its hash is the SHA-256 of all
// bytes after that line. Then come the sessions, sorted by their ids: a line with the [Summary] of a
// session, and its records in their order, one a line, in the interchange form of package eventlog.
//
// A session has all of its records, truncated ones too, except the pieces in which an answer
// streams: the complete answer is a record of its own. So no value is split over several records.
//
// # Redaction
//
// [Rules] name values that must not be in the file: members of JSON objects, matches of patterns,
// users. A value is replaced by the same placeholder wherever it is, so that a replay still finds
// the recorded result of a call. It is replaced in all records, not only where a rule found it, and
// also where it is encoded: within JSON in a string, percent-encoded, in HTML, in Base64 and in
// hexadecimal digits. What can't be replaced is an error: no file is written.
package cohort
