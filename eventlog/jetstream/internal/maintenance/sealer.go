package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
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

func newSealer(l *store.Store) *sealer {
	return &sealer{log: l, wake: make(chan struct{}, 1), tails: map[string]*unsealed{}}
}

// room is how many bytes of unsealed records it may keep.
func (s *sealer) room() int { return cmp.Or(s.most, sealBuffer/s.log.Partitions()) }

// startSealers seals what is due until the log is closed.
func (l *Maintenance) startSealers() {
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
		case idle >= forgetIdle && !t.queued, idle >= forgetSealed && !t.queued && t.count == 0:
			s.bytes -= t.bytes
			delete(s.tails, session)
		case t.due(now): // until forgetIdle also if it fails each time
			s.enqueue(t)
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

// forget drops a session's unsealed records.
func (s *sealer) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tails[session]; t != nil {
		s.bytes -= t.bytes
		delete(s.tails, session)
	}
}

func (l *Maintenance) sealerOf(session string) *sealer {
	return l.sealers[l.PartitionOf(session)]
}

// Seal implements [jetstream.Log.Seal].
func (l *Maintenance) Seal(ctx context.Context, session string) error {
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
