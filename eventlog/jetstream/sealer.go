package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// sealPace is the least time between two rounds of sealing, which share
	// the disk with appends.
	sealPace = 100 * time.Millisecond
	// sealSweep is how often idle sessions are looked for.
	sealSweep = 10 * time.Second
	// sealRound is how many sessions are sealed by one atomic batch.
	sealRound = 64
	// sealTimeout bounds a round.
	sealTimeout = 30 * time.Second
)

// sealer packs what a partition's sessions got into segments, from which a session is read
// many times faster than from the log among other sessions' records, and which
// outlive a purge of the log. It seals what this node appended; several nodes
// may seal the same session, since each segment is appended behind the one
// before by comparison.
type sealer struct {
	log     *Log
	room    int // for bytes
	wake    chan struct{}
	working sync.Mutex // held while segments are written

	mu    sync.Mutex
	tails map[string]*tail
	queue []*tail
	bytes int // of all tails
}

func newSealer(l *Log) *sealer {
	return &sealer{log: l, room: sealBuffer / l.opts.Partitions, wake: make(chan struct{}, 1), tails: map[string]*tail{}}
}

// note takes an acknowledged append.
func (s *sealer) note(session string, expected, last uint64, records []stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[session]
	if t == nil {
		t = &tail{session: session, from: expected, last: expected}
		s.tails[session] = t
	}
	t.touched = time.Now()
	s.bytes -= t.bytes
	t.add(expected, last, records, s.room-s.bytes)
	s.bytes += t.bytes
	if t.due(t.touched) {
		s.enqueue(t)
	}
}

func (s *sealer) enqueue(t *tail) {
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

// run seals what is due until the log is closed. What fails stays in the log
// and is due again with the next append or sweep.
func (s *sealer) run() {
	every := sealSweep
	if interval := s.log.opts.syncInterval(); interval > 0 { // what was too young before
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
		case <-s.log.closed:
			return
		}
		select {
		case <-pace.C:
		case <-s.log.closed:
			return
		}
		if s.log.refuses(false) == "" { // else the next sweep wakes it
			s.sealDue()
		}
		pace.Reset(sealPace)
	}
}

// sweep queues what has become due by time, and forgets what is long idle.
func (s *sealer) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session, t := range s.tails {
		idle := now.Sub(t.touched)
		switch {
		case t.due(now):
			s.enqueue(t)
		case idle >= forgetIdle && !t.queued:
			s.bytes -= t.bytes
			delete(s.tails, session)
		case idle >= sealIdle && t.bytes > 0:
			s.bytes -= t.bytes
			t.drop()
		}
	}
	if len(s.queue) > 0 { // it was put off
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// sealDue seals one round of what is queued.
func (s *sealer) sealDue() {
	ctx, cancel := context.WithTimeout(context.Background(), sealTimeout)
	defer cancel()
	s.working.Lock()
	defer s.working.Unlock()
	var round []*sealing
	var before time.Time
	if interval := s.log.opts.syncInterval(); interval > 0 {
		before = time.Now().Add(-2 * interval)
	}
	s.mu.Lock()
	for len(s.queue) > 0 && len(round) < sealRound {
		t := s.queue[0]
		s.queue = s.queue[1:]
		t.queued = false
		if !t.due(time.Now()) { // it was sealed meanwhile
			continue
		}
		round = append(round, &sealing{
			session: t.session, last: t.last, before: before, all: t.count < segmentRecords && t.bytes < segmentBytes,
			records: t.records, whole: t.whole(), from: t.from, segment: t.sealed, at: t.at,
		})
	}
	more := len(s.queue) > 0
	s.mu.Unlock()
	if more {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	ready := round[:0]
	for _, w := range round {
		if s.prepare(ctx, w) == nil {
			ready = append(ready, w)
		}
	}
	for len(ready) > 0 {
		ready = s.write(ctx, ready)
	}
}

// sealing is the work on one session: to pack its records up to last.
type sealing struct {
	session string
	last    uint64
	all     bool // also what does not fill a segment
	// before is set where the server syncs now and then only: a segment must
	// not survive a power loss that its records don't.
	before time.Time
	// records are those behind from up to last if whole, else they have to
	// be read.
	records []stored
	whole   bool
	from    uint64
	segment *segment // the last one, and its place
	at      uint64
	err     error
}

// prepare finds the last segment and the records behind it.
func (s *sealer) prepare(ctx context.Context, w *sealing) error {
	if w.segment == nil {
		var err error
		if w.segment, w.at, err = s.log.lastSegment(ctx, w.session); err != nil {
			return err
		}
	}
	end := uint64(0)
	if w.segment != nil {
		end = w.segment.last()
	}
	if !w.whole || w.from > end {
		w.records = nil
		for r, err := range s.log.read(ctx, w.session, end, w.last) {
			if err != nil {
				return err
			}
			w.records = append(w.records, r)
		}
		return nil
	}
	for len(w.records) > 0 && w.records[0].Sequence <= end {
		w.records = w.records[1:]
	}
	return nil
}

// take returns the next segment of w, nil if there is none to be written.
func (w *sealing) take() *segment {
	n, size, full := 0, 0, false
	for n < len(w.records) && !full {
		r := w.records[n]
		if !w.before.IsZero() && r.Time.After(w.before) {
			break
		}
		if n > 0 && size+len(r.Payload) > segmentBytes {
			full = true
			break
		}
		n, size = n+1, size+len(r.Payload)
		full = n == segmentRecords || size >= segmentBytes
	}
	if n == 0 || !full && !(w.all && n == len(w.records)) {
		return nil
	}
	next := w.segment.next(w.at)
	next.records = w.records[:n:n]
	return next
}

// write appends one segment of each member and returns those that have more.
func (s *sealer) write(ctx context.Context, round []*sealing) (more []*sealing) {
	var members []*sealing
	var segments []*segment
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
	last, err := s.log.publish(ctx, messages)
	for i, w := range members {
		at := last + 1 + uint64(i) - uint64(len(messages))
		if err != nil && len(members) > 1 { // one by one, so that each has its own answer
			at, w.err = s.log.publish(ctx, messages[i:i+1])
		} else {
			w.err = err
		}
		if w.segment == nil && (w.err == nil || errors.Is(w.err, eventlog.ErrOutcomeUnknown)) {
			w.err = s.confirmFirst(ctx, w, segments[i], at)
		}
		s.sealed(w, segments[i], at)
		if w.err == nil {
			more = append(more, w)
		}
	}
	return more
}

func (s *sealer) message(w *sealing, next *segment) (*nats.Msg, error) {
	b, err := next.pack()
	if err != nil {
		return nil, err
	}
	p := Partition(w.session, s.log.opts.Partitions)
	return &nats.Msg{Subject: segmentSubject(w.session, p), Data: b, Header: nats.Header{
		headerExpectedLast: {strconv.FormatUint(w.at, 10)},
	}}, nil
}

// sealed notes what became of a segment.
func (s *sealer) sealed(w *sealing, next *segment, at uint64) {
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
			t.sealed, t.at = nil, 0 // another node may have sealed
		}
		return
	}
	s.log.metrics.sealed()
	w.records = w.records[len(next.records):]
	// The records have been written; the tail needs the directory only.
	w.segment = &segment{
		index: next.index, previous: next.previous, directory: next.directory, earlier: next.earlier,
		records: []stored{{Record: eventlog.Record{Sequence: next.last()}}},
	}
	w.at, w.from = at, next.last()
	if t != nil {
		s.bytes -= t.bytes
		t.cut(next, at)
		t.sealed = w.segment
		s.bytes += t.bytes
	}
}

// settle notes what another node has sealed of the tail.
func (s *sealer) settle(w *sealing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[w.session]; t != nil && w.segment != nil && w.segment.last() > t.from {
		s.bytes -= t.bytes
		t.cut(w.segment, w.at)
		s.bytes += t.bytes
	}
}

// errErased: the session was erased while it was sealed.
var errErased = errors.New("jetstream: session erased")

// confirmFirst confirms a session's first segment, also one that was not
// answered for.
func (s *sealer) confirmFirst(ctx context.Context, w *sealing, first *segment, at uint64) error {
	if w.err != nil {
		found, place, err := s.log.lastSegment(ctx, w.session)
		if err != nil || found == nil {
			return w.err
		}
		first, at = found, place
	}
	return s.confirm(ctx, w.session, first, at)
}

// confirm takes a session's first segment back if the session was erased
// since its records were read, and perhaps created anew. (A later segment's
// comparison would have failed.)
func (s *sealer) confirm(ctx context.Context, session string, first *segment, at uint64) error {
	stream, subject, err := s.log.place(session)
	if err != nil {
		return err
	}
	m, err := s.log.messageAt(ctx, stream, first.last())
	if err == nil && m.subject == subject {
		if m, err = s.log.lastMessage(ctx, stream, subject); err == nil && !isErased(m.header) {
			return nil
		}
	}
	if err != nil && !errors.Is(err, errNoMessage) {
		return err
	}
	p := Partition(session, s.log.opts.Partitions)
	return errors.Join(errErased, s.log.secureDelete(ctx, segmentStream(p), at))
}

// forget drops a session's tail.
func (s *sealer) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[session]; t != nil {
		s.bytes -= t.bytes
		delete(s.tails, session)
	}
}

func (l *Log) sealerOf(session string) *sealer {
	return l.sealers[Partition(session, l.opts.Partitions)]
}

// Seal packs all that a session has into segments, the last one too, which
// may not be full. The log does so by itself; retention wants it at once.
func (l *Log) Seal(ctx context.Context, session string) error {
	head, inLog, err := l.head(ctx, session)
	if err != nil || !inLog {
		return err
	}
	s := l.sealerOf(session)
	s.working.Lock()
	defer s.working.Unlock()
	w := &sealing{session: session, last: head, all: true}
	if err := s.prepare(ctx, w); err != nil {
		return fmt.Errorf("jetstream: seal: %w", err)
	}
	for round := []*sealing{w}; len(round) > 0; {
		round = s.write(ctx, round)
	}
	if w.err != nil {
		return fmt.Errorf("jetstream: seal: %w", w.err)
	}
	return nil
}
