package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// sealPace is the least time between two rounds of sealing, which share the disk with
	// appends.
	sealPace = 100 * time.Millisecond
	// sealSweep is how often idle sessions are looked for.
	sealSweep = 10 * time.Second
	// sealRound is how many sessions are sealed by one atomic batch.
	sealRound = 64
	// sealTimeout bounds a round, and each session that has to be read.
	sealTimeout = 30 * time.Second
	// pieceRecords and pieceBytes bound how much is read and sealed at once: several
	// segments.
	pieceRecords = 10 * wire.SegmentRecords
	pieceBytes   = 8 * wire.SegmentBytes
)

// sealer packs new records of a partition's sessions into segments. From those a session
// is read many times faster than from the log among other sessions' records, and a purge
// of the log does not remove them. It seals records that this node appended. Several
// nodes may seal the same session, since each segment is appended after the one before by
// comparison.
type sealer struct {
	log     *store.Store
	most    int // set by tests; 0: its share of sealBuffer
	wake    chan struct{}
	working sync.Mutex // held while segments are written

	mu    sync.Mutex
	tails map[string]*unsealed
	queue []*unsealed
	bytes int // of all unsealed records
}

// segments seals the sessions of all partitions.
type segments struct {
	*store.Store
	sealers [layout.MaxPartitions]*sealer // one for each possible partition
}

func newSegments(records *store.Store) *segments {
	l := &segments{Store: records}
	for p := range l.sealers {
		l.sealers[p] = newSealer(records)
	}
	records.Appended = l.note
	return l
}

// start seals what is due until the log is closed.
func (l *segments) start() {
	run := func(p int, _ uint64) {
		if !l.Opts.ReadOnly && l.Opts.Hook == nil {
			l.Spawn(l.sealers[p].run)
		}
	}
	for p := range l.Partitions() {
		run(p, 0)
	}
	l.OnPartition = append(l.OnPartition, run)
}

func (l *segments) note(session string, expected, last uint64, records []wire.Stored) {
	l.sealerOf(session).note(session, expected, last, records)
}

// forget drops the unsealed records of a session.
func (l *segments) forget(session string) { l.sealerOf(session).forget(session) }

func newSealer(l *store.Store) *sealer {
	return &sealer{log: l, wake: make(chan struct{}, 1), tails: map[string]*unsealed{}}
}

// room is how many bytes of unsealed records it may keep.
func (s *sealer) room() int { return cmp.Or(s.most, sealBuffer/s.log.Partitions()) }

// note adds an acknowledged append.
func (s *sealer) note(session string, expected, last uint64, records []wire.Stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[session]
	if t == nil {
		t = &unsealed{session: session, from: expected, last: expected}
		s.tails[session] = t
	}
	t.touched = time.Now()
	s.bytes -= t.bytes
	t.add(expected, last, records, s.room()-s.bytes)
	s.bytes += t.bytes
	if t.due(t.touched) {
		s.enqueue(t)
	}
}

func (s *sealer) enqueue(t *unsealed) {
	if t.queued {
		return
	}
	t.queued = true
	s.queue = append(s.queue, t)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run seals what is due until the log is closed. After a failure the records stay in the
// log, and are due again with the next append or sweep.
func (s *sealer) run() {
	every := sealSweep
	if interval := s.log.Opts.SyncInterval(); interval > 0 { // records that were too young before
		every = min(every, 2*interval)
	}
	sweep := time.NewTicker(every)
	defer sweep.Stop()
	pace := time.NewTimer(0)
	defer pace.Stop()
	for {
		select {
		case <-s.wake:
		case now := <-sweep.C:
			s.sweep(now)
			continue
		case <-s.log.Closed:
			return
		}
		select {
		case <-pace.C:
		case <-s.log.Closed:
			return
		}
		if s.log.Refuses(false) == "" { // otherwise the next sweep wakes it
			s.sealDue(context.Background())
		}
		pace.Reset(sealPace)
	}
}

// sweep queues sessions that have become due by time, and drops those that were idle for
// long.
func (s *sealer) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session, t := range s.tails {
		idle := now.Sub(t.touched)
		switch {
		case t.due(now):
			s.enqueue(t)
		case idle >= forgetIdle && !t.queued, idle >= forgetSealed && !t.queued && t.count == 0:
			s.bytes -= t.bytes
			delete(s.tails, session)
		case idle >= forgetSealed && !t.queued:
			s.bytes -= t.bytes
			t.drop()
			t.sealed, t.at = nil, 0
		case idle >= sealIdle && t.bytes > 0:
			s.bytes -= t.bytes
			t.drop()
		}
	}
	if len(s.queue) > 0 { // an earlier round was postponed
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// sealDue seals one round of queued sessions.
func (s *sealer) sealDue(ctx context.Context) {
	s.working.Lock()
	defer s.working.Unlock()
	var round []*sealing
	s.mu.Lock()
	for len(s.queue) > 0 && len(round) < sealRound {
		t := s.queue[0]
		s.queue = s.queue[1:]
		t.queued = false
		if !t.due(time.Now()) { // sealed meanwhile
			continue
		}
		round = append(round, s.work(t))
	}
	more := len(s.queue) > 0
	s.mu.Unlock()
	if more {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.seal(ctx, round)
}

// work returns the sealing of a session's unsealed records. The caller holds the lock.
func (s *sealer) work(t *unsealed) *sealing {
	w := &sealing{
		session: t.session, last: t.last, all: t.count < wire.SegmentRecords && t.bytes < wire.SegmentBytes,
		records: t.records, whole: t.whole(), from: t.from, segment: t.sealed, at: t.at,
	}
	if interval := s.log.Opts.SyncInterval(); interval > 0 {
		w.before = time.Now().Add(-2 * interval)
	}
	return w
}

// seal seals the sessions of a round whose records are in memory together, and then each
// of the others separately, piece after piece, for as long as a round may take. Sessions
// that are left are due again.
func (s *sealer) seal(ctx context.Context, round []*sealing) {
	together, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	var ready, read []*sealing
	for _, w := range round {
		if s.find(together, w) != nil {
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

// forget drops a session's unsealed records.
func (s *sealer) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[session]; t != nil {
		s.bytes -= t.bytes
		delete(s.tails, session)
	}
}

func (l *segments) sealerOf(session string) *sealer {
	return l.sealers[l.PartitionOf(session)]
}

// Seal packs all records of a session into segments, the last of which may not be full.
// The log does so in the background; retention needs it at once.
func (l *segments) Seal(ctx context.Context, session string) error {
	head, inLog, err := l.HeadPlace(ctx, session)
	if err != nil || !inLog {
		return err
	}
	s := l.sealerOf(session)
	l.Lock(ctx, &s.working)
	defer s.working.Unlock()
	w := &sealing{session: session, last: head, all: true}
	if w.err = s.find(ctx, w); w.err == nil {
		s.sealRead(ctx, w)
	}
	if w.err != nil {
		return fmt.Errorf("jetstream: seal: %w", w.err)
	}
	return nil
}
