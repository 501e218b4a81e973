package jetstream

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// segmentVersion1 is the first byte of a segment that a version before columns packed:
// records one after the other, each as differences to the one before.
const segmentVersion1 = 1

func (u *unpacker) segmentV1() *segment {
	s := &segment{index: u.uint(), previous: u.uint()}
	ref := segmentRef{}
	for range u.count(2) {
		ref = segmentRef{at: ref.at + u.uint(), last: ref.last + u.uint()}
		s.directory = append(s.directory, ref)
	}
	s.earlier = segmentRef{at: u.uint(), last: u.uint()}
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
	s.records = make([]stored, 0, n)
	sequence, at, ordinal := s.previous, int64(0), int64(0)
	for range n {
		r := stored{previous: sequence}
		flags := u.uint()
		r.linked = flags&flagUnlinked == 0
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
			r.blob = string(u.bytes())
		}
		r.Payload = u.bytes()
		s.records = append(s.records, r)
	}
	return s
}
