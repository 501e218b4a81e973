// Package store appends and reads the records of sessions, with their blobs, whether the
// log or a segment has a record. An append succeeds only if its expected record is the
// session's last one. A read yields every record once, or fails. The package also stores
// the marks of erasures, removes and overwrites what a mark names, and recognises by it
// messages that arrive after the erasure of their session. Package maintenance seals,
// purges and decides on erasures.
package store
