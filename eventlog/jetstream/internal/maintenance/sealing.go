package maintenance

import (
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// sealing is the work on one session: pack its records up to last.
type sealing struct {
	session string
	last    uint64
	all     bool // seal also records that don't fill a segment
	// before is set if the server syncs only at intervals: a segment must not survive a
	// power loss that its records don't.
	before time.Time
	// records are those after from up to last if whole; otherwise they must be read, a
	// piece at a time. rest: there are more than the piece.
	records  []wire.Stored
	whole    bool
	rest     bool
	from     uint64
	segment  *wire.Segment // the last one; at is its sequence in the stream
	at       uint64
	progress bool // some were sealed
	err      error
}

// end returns the last record to be sealed, or 0.
func (w *sealing) end() uint64 {
	if w.segment == nil {
		return 0
	}
	return w.segment.Last()
}

// buffered reports whether the records after the last segment are in memory, and drops
// those before.
func (w *sealing) buffered() bool {
	end := w.end()
	if !w.whole || w.from > end {
		return false
	}
	for len(w.records) > 0 && w.records[0].Sequence <= end {
		w.records = w.records[1:]
	}
	return w.follows()
}

// follows reports whether the records follow the last segment: that may be of an erased
// session, and another node be about to remove it.
func (w *sealing) follows() bool {
	return len(w.records) == 0 || !w.records[0].Linked || w.records[0].Previous == w.end()
}

// take returns the next segment of w, nil if none must be written.
func (w *sealing) take() *wire.Segment {
	return w.segment.Take(w.at, w.records, w.before, w.all && !w.rest)
}
