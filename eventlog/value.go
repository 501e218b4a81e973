package eventlog

import "sync/atomic"

// value is what a payload decodes to. The copies of an entry share it, also between
// goroutines.
type value struct {
	payload  []byte       // the one that it is the value of
	fact     bool         // it is a fact, not a chunk
	from, to int32        // of a delta: where payload has its text; else 0
	known    atomic.Value // the Chunk or Fact, once it was decoded
}

// isOf reports whether v is the value of e: a copy of its entry may have another
// payload.
func (v *value) isOf(e Entry) bool {
	return v != nil && v.fact == (e.Kind == KindFact) &&
		len(e.Payload) > 0 && len(e.Payload) == len(v.payload) && &e.Payload[0] == &v.payload[0]
}

// decoded returns what e's payload decodes to. Only the first of the entry's
// copies decodes it, if they share a value.
func decoded[T any](e Entry, decode func([]byte) (T, error)) (T, error) {
	if !e.value.isOf(e) {
		return decode(e.Payload)
	}
	if known, ok := e.value.known.Load().(T); ok {
		return known, nil
	}
	got, err := decode(e.Payload)
	if err == nil {
		e.value.known.CompareAndSwap(nil, got) // if another one was first, either will do
	}
	return got, err
}

// DecodeOnce returns e with memory for what it decodes to: of all its copies only the
// first that is asked for its Chunk or Fact decodes the payload.
func (e Entry) DecodeOnce() Entry {
	if !e.value.isOf(e) {
		e.value = &value{payload: e.Payload, fact: e.Kind == KindFact}
	}
	return e
}

// Encoded returns e without the chunk or fact that its payload decodes to. It is for
// entries that are kept for long, and to compare entries with reflect.DeepEqual.
func (e Entry) Encoded() Entry {
	e.value = nil
	return e
}
