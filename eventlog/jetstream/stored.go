package jetstream

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// stored is a record as it lies in the log or in a segment.
type stored struct {
	eventlog.Record
	// previous is the sequence of the session's record before this one, 0 if
	// it is the first. Only messages that helixd did not write are not linked.
	previous uint64
	linked   bool
	// blob tells where the payload really is; empty: it is here.
	blob string
	// since is headerSince.
	since string
}

// recordOf reads a stored message. One that helixd did not write (no
// envelope) becomes a record of an empty kind, which folds park.
func recordOf(h nats.Header, data []byte) (stored, error) {
	seq, err := strconv.ParseUint(first(h, headerSequence), 10, 64)
	if err != nil {
		return stored{}, fmt.Errorf("jetstream: message without a sequence: %w", err)
	}
	at, _ := time.Parse(time.RFC3339Nano, first(h, headerTimeStamp))
	return storedAt(first(h, headerSubject), seq, at, h, data), nil
}

// storedAt is recordOf where the headers don't tell the place.
func storedAt(subject string, seq uint64, at time.Time, h nats.Header, data []byte) stored {
	r := stored{
		Record: eventlog.Record{Sequence: seq, Time: at, Entry: eventlog.Entry{Envelope: envelopeOf(subject, h), Payload: data}},
		blob:   first(h, headerBlob),
		since:  first(h, headerSince),
	}
	if isShort(h) {
		if long, ok := r.LongDelta(); ok {
			r.Entry = long
		} else {
			r.Envelope = eventlog.Envelope{Origin: r.Origin} // helixd did not write it
		}
	}
	r.previous, r.linked = previousOf(h, seq)
	return r
}

// previousOf tells which record a message was appended behind. JetStream
// keeps the comparison that stood on an append's first message; the others of
// the append were stored right behind it, in one atomic batch. So every record
// of helixd's names its predecessor, and a missing one is seen.
func previousOf(h nats.Header, seq uint64) (previous uint64, linked bool) {
	for _, name := range []string{headerPrevious, headerExpectedLast} {
		if v := first(h, name); v != "" {
			n, err := strconv.ParseUint(v, 10, 64)
			return n, err == nil && n < seq
		}
	}
	kind, _ := kindOf(h)
	return seq - 1, first(h, headerBatchID) != "" && kind != ""
}

func originOf(h nats.Header) (o eventlog.Origin) {
	if v := first(h, headerOriginSequence); v != "" {
		o.Sequence, _ = strconv.ParseUint(v, 10, 64)
		o.Time, _ = time.Parse(time.RFC3339Nano, first(h, headerOriginTime))
		o.Time = o.Time.UTC()
	}
	return o
}

func unescaped(h nats.Header, name string) string { return plainText(first(h, name)) }

func first(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
