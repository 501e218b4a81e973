package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// Stored is a record as it lies in the log or in a segment.
type Stored struct {
	eventlog.Record
	// Previous is the sequence of the session's record before this one, 0 if
	// it is the first. Only messages that helixd did not write are not linked.
	Previous uint64
	Linked   bool
	// Blob tells where the payload really is; empty: it is here.
	Blob string
	// Since is headerSince.
	Since string
}

// RecordOf reads a stored message. One that helixd did not write (no
// envelope) becomes a record of an empty kind, which folds park.
func RecordOf(h nats.Header, data []byte) (Stored, error) {
	seq, err := strconv.ParseUint(First(h, HeaderSequence), 10, 64)
	if err != nil {
		return Stored{}, fmt.Errorf("jetstream: message without a sequence: %w", err)
	}
	at, _ := time.Parse(time.RFC3339Nano, First(h, HeaderTimeStamp))
	return StoredAt(First(h, HeaderSubject), seq, at, h, data), nil
}

// StoredAt is recordOf where the headers don't tell the place.
func StoredAt(subject string, seq uint64, at time.Time, h nats.Header, data []byte) Stored {
	r := Stored{
		Record: eventlog.Record{Sequence: seq, Time: at, Entry: eventlog.Entry{Envelope: envelopeOf(subject, h), Payload: data}},
		Blob:   First(h, headerBlob),
		Since:  First(h, HeaderSince),
	}
	if isShort(h) {
		if long, ok := r.LongDelta(); ok {
			r.Entry = long
		} else {
			r.Envelope = eventlog.Envelope{Origin: r.Origin} // helixd did not write it
		}
	}
	r.Previous, r.Linked = previousOf(h, seq)
	return r
}

// previousOf tells which record a message was appended behind. JetStream
// keeps the comparison that stood on an append's first message; the others of
// the append were stored right behind it, in one atomic batch. So every record
// of helixd's names its predecessor, and a missing one is seen.
func previousOf(h nats.Header, seq uint64) (previous uint64, linked bool) {
	for _, name := range []string{HeaderPrevious, HeaderExpectedLast} {
		if v := First(h, name); v != "" {
			n, err := strconv.ParseUint(v, 10, 64)
			return n, err == nil && n < seq
		}
	}
	kind, _ := kindOf(h)
	return seq - 1, First(h, HeaderBatchID) != "" && kind != ""
}

func originOf(h nats.Header) (o eventlog.Origin) {
	if v := First(h, headerOriginSequence); v != "" {
		o.Sequence, _ = strconv.ParseUint(v, 10, 64)
		o.Time, _ = time.Parse(time.RFC3339Nano, First(h, headerOriginTime))
		o.Time = o.Time.UTC()
	}
	return o
}

func unescaped(h nats.Header, name string) string { return plainText(First(h, name)) }

func First(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Same compares what readers see, but for the time: a sealed record may have
// that of its acknowledgement.
func Same(a, b Stored) bool {
	return a.Sequence == b.Sequence && a.Envelope == b.Envelope && a.Blob == b.Blob &&
		a.Linked == b.Linked && bytes.Equal(a.Payload, b.Payload)
}
