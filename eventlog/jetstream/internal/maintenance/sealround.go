package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// seal seals the sessions of a round whose records are in memory together, and then each
// of the others separately, piece after piece, for as long as a round may take. Sessions
// that are left are due again.
func (s *sealer) seal(ctx context.Context, round []*sealing) {
	together, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	var ready, read []*sealing
	for _, w := range round {
		if w.err = s.find(together, w); w.err != nil {
			continue
		}
		if w.buffered() {
			ready = append(ready, w)
		} else {
			read = append(read, w)
		}
	}
	for len(ready) > 0 {
		ready = s.write(together, ready)
	}
	for _, w := range read {
		alone, cancel := context.WithTimeout(ctx, sealTimeout)
		s.sealRead(alone, w)
		cancel()
		s.gone(w)
		s.again(w)
	}
	for _, w := range round {
		s.countFailure(w)
	}
}

// countFailure counts a session of which something is damaged, so that it can't be sealed,
// once until it can. Whatever else fails is tried again soon, as after an election.
func (s *sealer) countFailure(w *sealing) {
	failed := errors.Is(w.err, wire.ErrDamaged) || errors.Is(w.err, eventlog.ErrIncomplete)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[w.session]
	if t == nil {
		return
	}
	if failed && !t.failed {
		s.log.Metrics.NotSealed()
	}
	t.failed = failed
}

// sealRead seals a session whose records must be read.
func (s *sealer) sealRead(ctx context.Context, w *sealing) {
	for w.err == nil {
		if w.err = s.readPiece(ctx, w); w.err != nil {
			return
		}
		sealed := w.last
		if w.segment != nil {
			sealed = w.segment.Last()
		}
		for round := []*sealing{w}; len(round) > 0; {
			round = s.write(ctx, round)
		}
		if !w.rest || w.segment == nil || w.segment.Last() == sealed {
			return
		}
	}
}

// gone forgets what is not in the log any more: another node may have erased the session, and
// the id may be in use again.
func (s *sealer) gone(w *sealing) {
	erased := errors.Is(w.err, eventlog.ErrSessionNotFound) && !errors.Is(w.err, store.ErrRecreated)
	none := w.err == nil && len(w.records) == 0 && w.end() < w.last
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[w.session]
	if t == nil || w.err == nil && !none {
		return
	}
	t.sealed, t.at = nil, 0 // the next round looks the last segment up
	if t.last == w.last && (erased || none) {
		s.bytes -= t.bytes
		delete(s.tails, w.session)
	}
}

// again queues a session that was sealed in part and is still due.
func (s *sealer) again(w *sealing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[w.session]; t != nil && w.progress && t.due(time.Now()) {
		s.enqueue(t)
	}
}

// find finds the last segment.
func (s *sealer) find(ctx context.Context, w *sealing) (err error) {
	if w.segment == nil {
		w.segment, w.at, err = s.log.LastSegment(ctx, w.session)
	}
	return err
}

// readPiece reads the records after the last segment: all, or as many as a piece may
// have.
func (s *sealer) readPiece(ctx context.Context, w *sealing) error {
	size := 0
	w.records, w.rest = nil, false
	for r, err := range s.log.ReadFrom(ctx, w.session, store.Cursor{At: w.end(), Known: w.segment != nil}, w.last) {
		if err != nil {
			return err
		}
		w.records, size = append(w.records, r), size+len(r.Payload)
		if len(w.records) >= pieceRecords || size >= pieceBytes {
			w.rest = r.Sequence < w.last
			return nil
		}
	}
	return nil
}

// write appends one segment of each member and returns the members that have more.
func (s *sealer) write(ctx context.Context, round []*sealing) (more []*sealing) {
	var members []*sealing
	var segments []*wire.Segment
	var messages []*nats.Msg
	for _, w := range round {
		next := w.take()
		if next == nil {
			s.settle(w)
			continue
		}
		m, err := s.message(w, next)
		if err != nil {
			w.err = err
			continue
		}
		members, segments, messages = append(members, w), append(segments, next), append(messages, m)
	}
	if len(members) == 0 {
		return nil
	}
	last, err := s.log.Publish(ctx, messages)
	for i, w := range members {
		at := last + 1 + uint64(i) - uint64(len(messages))
		if err != nil && len(members) > 1 { // separately, so that each gets its own answer
			at, w.err = s.log.Publish(ctx, messages[i:i+1])
		} else {
			w.err = err
		}
		if w.segment == nil && (w.err == nil || errors.Is(w.err, eventlog.ErrOutcomeUnknown)) {
			w.err = s.confirm(ctx, w, segments[i], at)
		}
		s.sealed(w, segments[i], at)
		if w.err == nil {
			more = append(more, w)
		}
	}
	return more
}

func (s *sealer) message(w *sealing, next *wire.Segment) (*nats.Msg, error) {
	b, err := next.Pack()
	if err != nil {
		return nil, err
	}
	p := s.log.PartitionOf(w.session)
	return &nats.Msg{Subject: layout.SegmentSubject(w.session, p), Data: b, Header: nats.Header{
		wire.HeaderExpectedLast: {strconv.FormatUint(w.at, 10)},
	}}, nil
}

// sealed records the result of writing a segment.
func (s *sealer) sealed(w *sealing, next *wire.Segment, at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[w.session]
	if w.err != nil {
		switch {
		case t == nil:
		case errors.Is(w.err, errErased):
			s.bytes -= t.bytes
			delete(s.tails, w.session)
		default:
			t.sealed, t.at = nil, 0 // another node may have sealed the session
		}
		return
	}
	s.log.Metrics.Sealed()
	w.progress = true
	w.records = w.records[len(next.Records):]
	// The records have been written; only the directory is needed further.
	w.segment = &wire.Segment{
		Index: next.Index, Previous: next.Previous, Directory: next.Directory, Earlier: next.Earlier,
		Records: []wire.Stored{{Record: eventlog.Record{Sequence: next.Last()}}},
	}
	w.at, w.from = at, next.Last()
	if t != nil {
		s.bytes -= t.bytes
		t.cut(next, at)
		t.sealed = w.segment
		s.bytes += t.bytes
	}
}

// settle drops unsealed records that another node has sealed.
func (s *sealer) settle(w *sealing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[w.session]; t != nil && w.segment != nil && w.segment.Last() > t.from {
		s.bytes -= t.bytes
		t.cut(w.segment, w.at)
		s.bytes += t.bytes
	}
}

// errErased: the session was erased while it was sealed.
var errErased = fmt.Errorf("%w: it was erased while it was sealed", eventlog.ErrSessionNotFound)

// confirm removes a first segment that was stored when the session had a tombstone, or gone:
// an erasure removes the segments that it finds, and may have looked before. If there was
// no answer, confirm looks the segment up. A later segment needs none of this: it is
// compared with the segment before it, so the server refuses it, or the erasure finds
// both.
func (s *sealer) confirm(ctx context.Context, w *sealing, next *wire.Segment, at uint64) error {
	if w.err != nil {
		found, place, err := s.log.LastSegment(ctx, w.session)
		if err != nil || found == nil || found.Last() != next.Last() {
			return w.err
		}
		next, at = found, place
	}
	there, err := s.log.InLog(ctx, w.session, next.Last())
	if err != nil || there {
		return errors.Join(w.err, err)
	}
	p := s.log.PartitionOf(w.session)
	return errors.Join(errErased, s.log.Wipe(ctx, w.session, layout.SegmentStream(p), layout.SegmentSubject(w.session, p), at))
}
