package verify

import (
	"errors"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// sealedWalk is the progress of the walk over a session's segments.
type sealedWalk struct {
	counted, read uint64 // messages, as counted by the server and by the walk
	index         uint64 // of the last segment that could be read
	places        []wire.SegmentRef
	damaged       uint64 // segments after that one that could not be read
	incomplete    bool   // it was reported that some are lost or damaged
}

func (w *sealedWalk) last() uint64 {
	if len(w.places) == 0 {
		return 0
	}
	return w.places[len(w.places)-1].Last
}

func (v *verification) segmentSubject() string {
	return layout.SegmentSubject(v.session, v.l.PartitionOf(v.session))
}

// sealedRecords yields the segments' records, and reports what is wrong with the
// segments.
func (v *verification) sealedRecords() iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		w := &v.seg
		for m, err := range v.l.allMessages(v.ctx, v.segments, v.segmentSubject()) {
			var s *wire.Segment
			if err == nil {
				s, err = wire.Unpack(m.Data)
			}
			if err != nil && !errors.Is(err, eventlog.ErrDamaged) {
				yield(wire.Stored{}, err)
				return
			}
			w.read++
			if err != nil {
				v.tell(integrity.FoundSegment, w.last()+1, "the segment of the records after %d, message %d of %s: %v", w.last(), m.Sequence, v.segments, err)
				w.damaged++
				w.incomplete = true
				continue
			}
			known := w.last()
			v.checkSegment(s, m.Sequence)
			for _, r := range s.Records {
				if r.Sequence > known && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// checkSegment checks whether a segment, which has the given sequence, follows the one
// before.
func (v *verification) checkSegment(s *wire.Segment, at uint64) {
	w := &v.seg
	last := w.last()
	switch {
	case len(w.places) == 0 && w.damaged == 0:
		switch {
		case (s.Index == 0) == (s.Previous == 0) && s.Previous == v.floor:
		case (s.Index == 0) == (s.Previous == 0) && s.Previous < v.floor:
			v.tell(integrity.FoundTrimming, v.floor, "retention has marked the records up to %d as removed, and segments hold them from %d on", v.floor, s.Previous+1)
		default:
			w.incomplete = true
			v.tell(integrity.FoundSegmentGap, s.Previous, "the segments of the records up to %d are lost", s.Previous)
		}
	case len(w.places) > 0 && (s.Index <= w.index || s.Previous < last):
		w.incomplete = true
		v.tell(integrity.FoundSegment, s.Previous+1, "segment %d with the records after %d, message %d of %s, comes after segment %d", s.Index, s.Previous, at, v.segments, w.index)
		return // it is not part of the chain
	case len(w.places) > 0 && w.damaged == 0 && (s.Index != w.index+1 || s.Previous != last),
		len(w.places) > 0 && s.Index > w.index+1+w.damaged:
		w.incomplete = true
		v.tell(integrity.FoundSegmentGap, s.Previous, "the segments of the records from %d to %d are lost", last+1, s.Previous)
	}
	w.index, w.damaged = s.Index, 0
	v.checkDirectory(s, at)
	w.places = append(w.places, wire.SegmentRef{At: at, Last: s.Last()})
}

// checkDirectory checks whether the segments that s names are at their sequences.
// Segments that retention has removed need not be, and lost ones can't.
func (v *verification) checkDirectory(s *wire.Segment, at uint64) {
	w := &v.seg
	ok := uint64(len(s.Directory)) == s.Index%wire.DirectorySize && (s.Index >= wire.DirectorySize) == (s.Earlier != wire.SegmentRef{})
	for _, named := range append(slices.Clone(s.Directory), s.Earlier) {
		i, there := slices.BinarySearchFunc(w.places, named.At, func(r wire.SegmentRef, at uint64) int {
			return int(int64(r.At) - int64(at))
		})
		if there {
			ok = ok && w.places[i] == named
		} else {
			ok = ok && (named.Last <= v.floor || w.incomplete)
		}
	}
	if !ok {
		v.tell(integrity.FoundSegment, s.Previous+1, "the directory of the segment of the records after %d, message %d of %s, is wrong", s.Previous, at, v.segments)
	}
}

// end compares the walk with the server's count.
func (w *sealedWalk) end(v *verification) {
	if w.read >= w.counted || w.incomplete {
		return
	}
	if _, err := v.l.Head(v.ctx, v.session); errors.Is(err, eventlog.ErrSessionNotFound) {
		return // erased meanwhile
	}
	// A trim that had raised the floor before may have removed segments since, and others
	// were sealed: those that are there now and are not new were read.
	left, err := v.l.Count(v.ctx, v.segments, v.segmentSubject())
	if err != nil {
		return
	}
	if newest, _, err := v.l.LastSegment(v.ctx, v.session); err == nil && newest != nil && len(w.places) > 0 && newest.Index > w.index {
		left -= min(left, newest.Index-w.index)
	}
	if left <= w.read {
		return
	}
	if floor, err := v.l.Floor(v.ctx, v.session); err == nil && floor == v.floor { // otherwise they were trimmed meanwhile
		v.tell(integrity.FoundSegmentGap, w.last()+1, "the server counts %d segments and yields %d; the last that it yields ends with %d", w.counted, w.read, w.last())
	}
}
