package maintenance

import (
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

const (
	// sealLeast is from how many records on a session is sealed when a run ends or after
	// an idle time; fewer are read from the log as quickly.
	sealLeast = 16
	// sealIdle is after what time without an append a session is sealed.
	sealIdle = 30 * time.Second
	// forgetIdle is after what time without an append a session's unsealed records are no
	// longer tracked.
	forgetIdle = time.Hour
	// forgetSealed is after what time without an append a session's last segment is no longer
	// kept, nor anything else of a session that is sealed to its end. The next append reads
	// the segment again.
	forgetSealed = 2 * time.Minute
	// sealBuffer is how many bytes of payloads a node keeps for sealing, besides at most
	// as many that it has just sealed. Other records are read from the log again.
	sealBuffer = 64 << 20
)

// unsealed is a session's records that this node has appended since it was last sealed.
type unsealed struct {
	session string
	// from and last bound the records: from < sequence <= last.
	from, last uint64
	count      int
	ends       bool // a run, or the stream, ended or was suspended
	touched    time.Time
	queued     bool
	failed     bool // it could not be sealed, and that was counted
	// records are all of them, or nil; bytes is their size.
	records []wire.Stored
	bytes   int
	spent   int // sealed records that are still in memory before them
	// sealed is the session's last segment if this node wrote it; at is its sequence.
	sealed *wire.Segment
	at     uint64
}

// add adds what was appended after expected. If that is not the last record, another node
// has appended in between, and the unsealed records begin there.
func (t *unsealed) add(expected, last uint64, records []wire.Stored, room int) {
	if t.last != expected {
		t.from, t.count, t.ends = expected, 0, false
		t.drop()
	}
	size := 0
	for _, r := range records {
		size += len(r.Payload)
		t.ends = t.ends || ends(r.Envelope)
	}
	if t.whole() && size <= room {
		next, previous := last+1-uint64(len(records)), expected
		for _, r := range records {
			r.Entry = r.Encoded() // kept until it is sealed
			r.Sequence, r.Previous, r.Time = next, previous, t.touched
			t.records = append(t.records, r)
			next, previous = next+1, next
		}
		t.bytes += size
	} else {
		t.drop()
	}
	t.last = last
	t.count += len(records)
}

// whole reports whether all records are in memory.
func (t *unsealed) whole() bool { return len(t.records) == t.count }

// drop gives up the buffered records.
func (t *unsealed) drop() { t.records, t.bytes, t.spent = nil, 0, 0 }

// due reports whether the session should be sealed now.
func (t *unsealed) due(now time.Time) bool {
	return t.count >= wire.SegmentRecords || t.bytes >= wire.SegmentBytes ||
		t.count >= sealLeast && (t.ends || now.Sub(t.touched) >= sealIdle)
}

// cut keeps the records after the last segment s, whose sequence is at.
func (t *unsealed) cut(s *wire.Segment, at uint64) {
	t.sealed, t.at = s, at
	from, upTo := t.from, s.Last()
	if upTo >= t.last {
		t.from, t.count, t.ends = t.last, 0, false
		t.drop()
		return
	}
	// Only this session's own records count: s may be an erased session's, whose id was
	// used again.
	t.from = max(t.from, upTo)
	if len(t.records) == 0 {
		for _, r := range s.Records {
			if r.Sequence > from {
				t.count = max(t.count-1, 0)
			}
		}
		return
	}
	gone := 0
	for gone < len(t.records) && t.records[gone].Sequence <= upTo {
		t.bytes -= len(t.records[gone].Payload)
		gone++
	}
	t.count -= gone
	t.records, t.spent = t.records[gone:], t.spent+gone
	if t.spent >= len(t.records) { // amortised: moving costs no more than was added
		t.records, t.spent = slices.Clone(t.records), 0
	}
}

// ends reports whether a record is probably the last for a while.
func ends(e eventlog.Envelope) bool {
	if e.Kind != eventlog.KindFact {
		return false
	}
	switch e.Type {
	case (*fact.RunEnded)(nil).Type(), (*fact.StreamPaused)(nil).Type(),
		(*fact.StreamEnd)(nil).Type(), (*fact.StreamFailed)(nil).Type():
		return true
	}
	return false
}
