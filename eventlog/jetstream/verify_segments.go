package jetstream

import (
	"errors"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// sealedWalk is how far the walk over a session's segments has come.
type sealedWalk struct {
	counted, read uint64 // messages, by the server's account and by the walk's
	index         uint64 // of the last segment that could be read
	places        []segmentRef
	damaged       uint64 // segments behind that one that could not be read
	incomplete    bool   // that some are lost or damaged was told
}

func (w *sealedWalk) last() uint64 {
	if len(w.places) == 0 {
		return 0
	}
	return w.places[len(w.places)-1].last
}

func (v *verification) segmentSubject() string {
	return segmentSubject(v.session, v.l.partitionOf(v.session))
}

// sealedRecords yields what the segments have, and tells what is wrong with
// them.
func (v *verification) sealedRecords() iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		w := &v.seg
		for m, err := range v.l.allMessages(v.ctx, v.segments, v.segmentSubject()) {
			var s *segment
			if err == nil {
				s, err = unpack(m.data)
			}
			if err != nil && !errors.Is(err, eventlog.ErrDamaged) {
				yield(stored{}, err)
				return
			}
			w.read++
			if err != nil {
				v.tell(eventlog.FoundSegment, w.last()+1, "the segment of the records behind %d, message %d of %s: %v", w.last(), m.sequence, v.segments, err)
				w.damaged++
				w.incomplete = true
				continue
			}
			known := w.last()
			v.checkSegment(s, m.sequence)
			for _, r := range s.records {
				if r.Sequence > known && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// checkSegment looks whether a segment, which lies at the given place, follows
// on the one before.
func (v *verification) checkSegment(s *segment, at uint64) {
	w := &v.seg
	last := w.last()
	switch {
	case len(w.places) == 0 && w.damaged == 0:
		switch {
		case (s.index == 0) == (s.previous == 0) && s.previous == v.floor:
		case (s.index == 0) == (s.previous == 0) && s.previous < v.floor:
			v.tell(eventlog.FoundTrimming, v.floor, "retention has marked the records up to %d as removed, and segments hold them from %d on", v.floor, s.previous+1)
		default:
			w.incomplete = true
			v.tell(eventlog.FoundSegmentGap, s.previous, "the segments of the records up to %d are lost", s.previous)
		}
	case len(w.places) > 0 && (s.index <= w.index || s.previous < last):
		w.incomplete = true
		v.tell(eventlog.FoundSegment, s.previous+1, "segment %d with the records behind %d, message %d of %s, stands behind segment %d", s.index, s.previous, at, v.segments, w.index)
		return // it is no part of the chain
	case len(w.places) > 0 && w.damaged == 0 && (s.index != w.index+1 || s.previous != last),
		len(w.places) > 0 && s.index > w.index+1+w.damaged:
		w.incomplete = true
		v.tell(eventlog.FoundSegmentGap, s.previous, "the segments of the records from %d to %d are lost", last+1, s.previous)
	}
	w.index, w.damaged = s.index, 0
	v.checkDirectory(s, at)
	w.places = append(w.places, segmentRef{at: at, last: s.last()})
}

// checkDirectory looks whether the segments that s names are where it says.
// Those that retention has removed need not be, and those that are lost can't.
func (v *verification) checkDirectory(s *segment, at uint64) {
	w := &v.seg
	ok := uint64(len(s.directory)) == s.index%directorySize && (s.index >= directorySize) == (s.earlier != segmentRef{})
	for _, named := range append(slices.Clone(s.directory), s.earlier) {
		i, there := slices.BinarySearchFunc(w.places, named.at, func(r segmentRef, at uint64) int {
			return int(int64(r.at) - int64(at))
		})
		if there {
			ok = ok && w.places[i] == named
		} else {
			ok = ok && (named.last <= v.floor || w.incomplete)
		}
	}
	if !ok {
		v.tell(eventlog.FoundSegment, s.previous+1, "the directory of the segment of the records behind %d, message %d of %s, is wrong", s.previous, at, v.segments)
	}
}

// end compares with what the server counts.
func (w *sealedWalk) end(v *verification) {
	if w.read >= w.counted || w.incomplete {
		return
	}
	if _, err := v.l.Head(v.ctx, v.session); errors.Is(err, eventlog.ErrSessionNotFound) {
		return // it was erased meanwhile
	}
	if floor, err := v.l.floor(v.ctx, v.session); err == nil && floor == v.floor { // else they were trimmed meanwhile
		v.tell(eventlog.FoundSegmentGap, w.last()+1, "the server counts %d segments and yields %d; the last that it yields ends with %d", w.counted, w.read, w.last())
	}
}
