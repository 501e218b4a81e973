// Package store appends and reads the records of sessions, large payloads too, whether the log or a segment
// has them, and keeps the marks of erasures, by which late messages are recognised.
package store
