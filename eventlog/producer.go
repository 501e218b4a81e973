package eventlog

import (
	"strings"
)

// RuntimeOnly reports whether a type is that of a lifecycle chunk. Only the
// runtime that drives the run writes those, never an outside producer.
func RuntimeOnly(chunkType string) bool {
	switch chunkType {
	case (*CheckpointCreated)(nil).Type(), (*StreamResync)(nil).Type(), (*ExecutorSuperseded)(nil).Type(),
		(*SuspensionMarker)(nil).Type():
		return true
	}
	return strings.HasPrefix(chunkType, "run_") || strings.HasPrefix(chunkType, "step_")
}

// keyedPrefix begins the writer of an append that has an idempotency key. No
// claim's id begins so.
const keyedPrefix = "key:"

// KeyedWriter returns the writer, for [AppendOnce], of an append that its
// producer may repeat: it names the producer's idempotency key and the digest
// of the request, which contains no colon. All records of the append have this writer,
// so that the log itself says which keys were answered, and with what, atomically
// with the append. A separate record would exceed [MaxAppendRecords].
func KeyedWriter(key, digest string) string { return keyedPrefix + digest + ":" + key }

// ParseKeyedWriter takes a writer apart that KeyedWriter made.
func ParseKeyedWriter(writer string) (key, digest string, ok bool) {
	rest, ok := strings.CutPrefix(writer, keyedPrefix)
	if !ok {
		return "", "", false
	}
	digest, key, ok = strings.Cut(rest, ":")
	if !ok || digest == "" || key == "" {
		return "", "", false
	}
	return key, digest, true
}
