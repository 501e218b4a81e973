package wire

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// segmentVersion1 is the first byte of a segment that a version before columns packed:
// records one after the other, each as differences to the one before.
const segmentVersion1 = 1

func (u *unpacker) segmentV1() *Segment {
	s := &Segment{Index: u.uint(), Previous: u.uint()}
	ref := SegmentRef{}
	for range u.count(2) {
		ref = SegmentRef{At: ref.At + u.uint(), Last: ref.Last + u.uint()}
		s.Directory = append(s.Directory, ref)
	}
	s.Earlier = SegmentRef{At: u.uint(), Last: u.uint()}
	envelopes := make([]eventlog.Envelope, 0, 16)
	for range u.count(3) {
		var e eventlog.Envelope
		if err := json.Unmarshal(u.bytes(), &e); err != nil && u.err == nil {
			u.err = err
		}
		envelopes = append(envelopes, e)
	}
	var origin, originAt int64
	n := u.count(6)
	s.Records = make([]Stored, 0, n)
	sequence, at, ordinal := s.Previous, int64(0), int64(0)
	for range n {
		r := Stored{Previous: sequence}
		flags := u.uint()
		r.Linked = flags&flagUnlinked == 0
		sequence += u.uint()
		at += u.int()
		ordinal += u.int()
		r.Sequence, r.Time = sequence, time.Unix(0, at).UTC()
		if i := u.uint(); i < uint64(len(envelopes)) {
			r.Envelope = envelopes[i]
		} else {
			u.fail()
		}
		r.Ordinal = uint64(ordinal)
		if flags&flagOrigin != 0 {
			origin += u.int()
			originAt += u.int()
			r.Origin = eventlog.Origin{Sequence: uint64(origin), Time: time.Unix(originAt, int64(u.uint())).UTC()}
		}
		if flags&flagBlob != 0 {
			r.Blob = string(u.bytes())
		}
		r.Payload = u.bytes()
		s.Records = append(s.Records, r)
	}
	return s
}
