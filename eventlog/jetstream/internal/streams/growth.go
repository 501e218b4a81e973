package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A log grows while processes use it. It must not happen that one of them creates a
// session in the partition of the old number after others have begun to look for it in
// the partition of the new number. So:
//
//  - Each growth has one message that states its phase: announced, closing, grown or cancelled. It
//    changes by comparison only.
//  - A process creates sessions under a lease. It reads the message every growthLook. If there is
//    no growth, it may create sessions for createLease from the moment of the request. The first
//    append of a session is also acknowledged under a lease only.
//  - From the announcement on the lease is short, and it is extended by a message that the server
//    stores only if the growth is still in the phase that the process knows: a read may come from
//    a server that does not know yet that it no longer leads. The announcement lasts until all
//    earlier leases have ended, so that every process that creates sessions knows of it.
//  - While the growth is closing, sessions that the new number puts elsewhere are not created;
//    their appends wait for some seconds. When the leases have ended once more, the log's sessions
//    are listed: they stay where they are, see [layout.Places]. Every acknowledged session is among
//    them. Then the growth is grown, and every process uses the new number.
//  - An append that the server stored too late for the list is not acknowledged, and is sent again
//    to the new partition. Its remains in the old one belong to no session: see strays.
//  - A process that died while the log grew must not stop the others: one that sees the same
//    message for growthPatience cancels the growth.
//
// If only one process has the log open, it waits for no other.

// phase is the phase of a growth.
type phase string

const (
	announced phase = "announced"
	closing   phase = "closing"
	grown     phase = "grown"
	cancelled phase = "cancelled"
)

// growth is the message on [layout.GrowthSubject].
type growth struct {
	Phase phase  `json:"phase"`
	To    int    `json:"to"` // partitions
	By    string `json:"by"` // the process that grows the log, so that it recognises its own message
}

const (
	// createLease is longer than an election: sessions can be created while there is no
	// leader to ask.
	createLease    = 15 * time.Second
	growthLook     = time.Second
	shortLease     = 2 * time.Second
	growthSoon     = 100 * time.Millisecond
	growthPatience = 90 * time.Second
	// leaseMargin allows for clocks that run at different speeds.
	leaseMargin = time.Second
	// deposedLeader is how long a server may answer that no longer leads: it notices
	// within 20 s that it has lost the others.
	deposedLeader = 25 * time.Second
)

// ErrMisplaced: the log has grown, and the session belongs elsewhere.
var ErrMisplaced = errors.New("jetstream: the log has grown while the session was created")

// permit is the lease under which sessions are created.
type permit struct {
	mu      sync.Mutex
	until   time.Time
	closing int           // sessions that this number puts elsewhere are not created; 0: no limit
	changed chan struct{} // closed and replaced with each change
}

func newPermit() *permit { return &permit{changed: make(chan struct{})} }

// extend extends the lease until a moment. It shortens it only if closing has changed.
func (p *permit) extend(until time.Time, closing int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closing != p.closing || until.After(p.until) {
		p.until, p.closing = until, closing
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// unlimited is the end of a lease that does not end.
func unlimited() time.Time { return time.Now().Add(100 * 365 * 24 * time.Hour) }

// sole reports whether no other process has the log open.
func (l *Set) sole() bool {
	return l.GroupSync() || l.Opts.Restores != nil || l.Opts.Hook != nil
}

// mayCreate reports whether a session may be created in its present partition. If not,
// changed is closed when that may have changed.
func (l *Set) mayCreate(session string) (may bool, changed <-chan struct{}) {
	l.permit.mu.Lock()
	defer l.permit.mu.Unlock()
	may = time.Now().Before(l.permit.until) && (l.permit.closing == 0 || !l.places.Load().Moves(session, l.permit.closing))
	return may, l.permit.changed
}

// AwaitPermit waits until a session may be created. Errors: ErrUnavailable.
func (l *Set) AwaitPermit(ctx context.Context, session string) error {
	patience := time.NewTimer(link.LeaderPatience)
	defer patience.Stop()
	for {
		may, changed := l.mayCreate(session)
		if may {
			return nil
		}
		select {
		case <-changed:
		case <-patience.C:
			return fmt.Errorf("%w: the log is growing, or its servers do not answer: it may not create sessions", eventlog.ErrUnavailable)
		case <-l.Closed:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ConfirmPlace returns when it is certain that the session which an append to partition p
// has created stays there. Errors: ErrMisplaced if the log has grown without it;
// ErrOutcomeUnknown.
func (l *Set) ConfirmPlace(ctx context.Context, session string, p int) error {
	err := l.AwaitPermit(ctx, session) // first, since the partition may change until then
	switch {
	case l.PartitionOf(session) != p:
		return ErrMisplaced
	case err != nil:
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// StartGrowth makes the log follow its growth. If no other process has it open, sessions
// can be created at any time.
func (l *Set) StartGrowth() {
	switch {
	case l.sole() || l.Opts.ReadOnly:
		l.permit.extend(unlimited(), 0)
	default:
		l.Spawn(l.watchGrowth)
	}
}

// watchGrowth follows the log's growth until the log is closed.
func (l *Set) watchGrowth() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l.Spawn(func() {
		select {
		case <-l.Closed:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		if l.Sleep(ctx, l.lookAtGrowth(ctx)) != nil {
			return
		}
	}
}

// lookAtGrowth checks the growth once, and returns the pause until the next check.
func (l *Set) lookAtGrowth(ctx context.Context) time.Duration {
	began := time.Now()
	n := len(l.places.Load().Settled)
	g, seq, err := l.growthOf(ctx, n)
	if err != nil {
		return growthLook / 2 // meanwhile the lease runs out
	}
	if seq != l.seenGrowth {
		l.seenGrowth, l.seenSince = seq, began
	}
	switch g.Phase {
	case announced, closing:
	case grown:
		if err := l.takeOver(ctx, g.To); err != nil {
			return growthLook / 2
		}
		return 0
	default:
		l.permit.extend(began.Add(createLease), 0)
		return growthLook
	}
	if began.Sub(l.seenSince) > growthPatience {
		g.Phase = cancelled
		_, _ = l.setGrowth(ctx, n, seq, g) // the next check shows the result
		return growthSoon
	}
	to := 0
	if g.Phase == closing {
		to = g.To
		l.permit.extend(time.Time{}, to)
	}
	began = time.Now()
	if l.stillSo(ctx, n, seq) {
		l.permit.extend(began.Add(shortLease), to)
	}
	return growthSoon
}

// growthOf returns the phase of a growth, and the sequence of its message, 0 if there is
// none.
func (l *Set) growthOf(ctx context.Context, n int) (g growth, seq uint64, err error) {
	m, err := l.LastMessage(ctx, layout.PlacesStream, layout.GrowthSubject(n))
	if errors.Is(err, link.ErrNoMessage) {
		return g, 0, nil
	}
	if err == nil {
		if jerr := json.Unmarshal(m.Data, &g); jerr != nil {
			err = fmt.Errorf("%w: message %d of stream %s: %w", wire.ErrDamaged, m.Sequence, layout.PlacesStream, jerr)
		}
	}
	if err != nil {
		return g, 0, fmt.Errorf("jetstream: growth: %w", err)
	}
	if was := l.places.Load(); was != nil && n == len(was.Settled) && !layout.Growing(was.Grown(g.To, nil).Numbers) {
		g.Phase = cancelled // another program's
	}
	return g, m.Sequence, nil
}

// setGrowth stores the phase of a growth if the last message about it is the one at
// after. It returns the sequence of the new message.
func (l *Set) setGrowth(ctx context.Context, n int, after uint64, g growth) (seq uint64, err error) {
	data, err := json.Marshal(g)
	if err != nil {
		return 0, err
	}
	for began := time.Now(); ; {
		seq, err = l.publishPlaces(ctx, layout.GrowthSubject(n), nil, data, natsjs.WithExpectLastSequencePerSubject(after))
		if err == nil {
			return seq, nil
		}
		is, at, lookErr := l.growthOf(ctx, n)
		switch {
		case lookErr == nil && is == g: // the answer was lost
			return at, nil
		case lookErr == nil && at != after, !link.IsInFlight(err) && !link.IsUnsettled(err), time.Since(began) > link.LeaderPatience:
			return 0, fmt.Errorf("jetstream: growth: %w", err)
		}
		// The server is replicating a message of stillSo, and can't compare meanwhile; or a leader
		// is being elected.
		if perr := l.Sleep(ctx, link.MinRefusedPause); perr != nil {
			return 0, perr
		}
	}
}

// stillSo reports whether the last message of a growth is the one at seq: it sends a
// message that the server stores in that case only.
func (l *Set) stillSo(ctx context.Context, n int, seq uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, shortLease)
	defer cancel()
	_, err := l.publishPlaces(ctx, layout.GrowthSeenSubject(n), nil, nil, natsjs.WithExpectLastSequenceForSubject(seq, layout.GrowthSubject(n)))
	return err == nil
}

// publishPlaces stores a message in the stream of the tables.
func (l *Set) publishPlaces(ctx context.Context, subject string, header nats.Header, data []byte, opts ...natsjs.PublishOpt) (seq uint64, err error) {
	err = l.Step(ctx, "places", func(ctx context.Context) error {
		ack, err := l.JS.PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: data}, opts...)
		if err == nil {
			seq = ack.Sequence
			err = l.Await(ctx, layout.PlacesStream, seq)
		}
		return err
	})
	return seq, err
}

// takeOver makes this process use the new number of partitions.
func (l *Set) takeOver(ctx context.Context, to int) error {
	l.growing.Lock()
	defer l.growing.Unlock()
	was := l.places.Load()
	n := len(was.Settled)
	if was.Partitions() >= to {
		return nil
	}
	settled, err := l.loadSettled(ctx, n)
	if err != nil {
		return err
	}
	begins := map[int]uint64{}
	for p := was.Partitions(); p < to; p++ {
		s, err := l.FindStream(ctx, layout.LogStream(p))
		if err == nil {
			err = l.stage(p)
		}
		if err != nil {
			return err
		}
		begins[p] = s.CachedInfo().State.FirstSeq
	}
	for p := was.Partitions(); p < to; p++ { // from here on nothing fails: they start goroutines
		for _, take := range l.OnPartition {
			take(p, begins[p])
		}
	}
	l.places.Store(was.Grown(to, settled))
	l.grownAt.Store(time.Now().UnixNano())
	return nil
}

// A stray is the first append of a session that the server stored after the log had
// grown, in the partition of the old number; see growth. It was not acknowledged, and
// does not belong to the session.

// Stray reports whether the messages that partition p has of a session are a stray. If
// the log has grown without this process, it first applies each growth.
func (l *Set) Stray(ctx context.Context, session string, p int) (bool, error) {
	for session != "" && l.PartitionOf(session) != p {
		g, _, err := l.growthOf(ctx, len(l.places.Load().Settled))
		if err != nil || g.Phase != grown {
			return true, err
		}
		if err := l.takeOver(ctx, g.To); err != nil {
			return true, err
		}
	}
	return false, nil
}

// strayAge is how long after a growth the log is searched for strays.
const strayAge = time.Minute

// DropStrays removes the strays of the last growth, once, with wipe, which removes a message
// of a session for good.
func (l *Set) DropStrays(ctx context.Context, now time.Time, wipe func(ctx context.Context, session, stream, subject string, at uint64) error) error {
	places := l.places.Load()
	n := len(places.Settled)
	if n == 0 || int(l.swept.Load()) == n || now.Sub(time.Unix(0, l.grownAt.Load())) < strayAge {
		return nil
	}
	for p := range places.Partitions() {
		stream := layout.LogStream(p)
		some, err := l.SubjectsOf(ctx, stream, layout.LogSubjects+strconv.Itoa(p)+".*")
		if err != nil {
			return err
		}
		for session := range some {
			is, err := l.Stray(ctx, session, p)
			if err != nil {
				return err
			}
			for is {
				subject := layout.LogSubject(session, p)
				at, err := l.FirstFrom(ctx, stream, subject, 1)
				if err != nil {
					return err
				}
				if at == 0 {
					break
				}
				if err := wipe(ctx, session, stream, subject, at); err != nil {
					return err
				}
			}
		}
	}
	l.swept.Store(int64(n))
	return nil
}
