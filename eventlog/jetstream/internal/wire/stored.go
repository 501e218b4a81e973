package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// Stored is a record as it is stored in the log or in a segment.
type Stored struct {
	eventlog.Record
	// Previous is the sequence of the session's record before this one, 0 if it is the
	// first. Messages that helixd did not write are not linked.
	Previous uint64
	Linked   bool
	// Blob is the address of the real payload; empty: the payload is here.
	Blob string
	// Since is HeaderSince.
	Since string
}

// RecordOf decodes a stored message. A message that helixd did not write (no envelope)
// becomes a record with an empty kind, which folds park. It fails if the message has no
// sequence.
func RecordOf(h nats.Header, data []byte) (Stored, error) {
	seq, err := strconv.ParseUint(First(h, HeaderSequence), 10, 64)
	if err != nil {
		return Stored{}, fmt.Errorf("jetstream: message without a sequence: %w", err)
	}
	at, _ := time.Parse(time.RFC3339Nano, First(h, HeaderTimeStamp))
	return StoredAt(First(h, HeaderSubject), seq, at, h, data), nil
}

// StoredAt is RecordOf for headers without a sequence and a time.
func StoredAt(subject string, seq uint64, at time.Time, h nats.Header, data []byte) Stored {
	r := Stored{
		Record: eventlog.Record{Sequence: seq, Time: at, Entry: eventlog.Entry{Envelope: envelopeOf(subject, h), Payload: data}},
		Blob:   First(h, headerBlob),
		Since:  First(h, HeaderSince),
	}
	if len(r.Blob) > maxBlobAddress { // another program's: it leads nowhere, and a segment takes no such address
		r.Blob = r.Blob[:maxBlobAddress]
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

// previousOf returns the record after which a message was appended. JetStream keeps the
// comparison that was in the first message of an append; the others of the append were
// stored right after it, in one atomic batch. So every record of helixd names its
// predecessor, and a missing one is noticed.
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

// Same compares what readers see, without the time: a sealed record may have the time of
// its acknowledgement.
func Same(a, b Stored) bool {
	return a.Sequence == b.Sequence && a.Envelope == b.Envelope && a.Blob == b.Blob &&
		a.Linked == b.Linked && bytes.Equal(a.Payload, b.Payload)
}
