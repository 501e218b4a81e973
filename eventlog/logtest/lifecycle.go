package logtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Lifecycle interleaves all that may happen to a session's bytes: appends, sealing, purges, trims,
// erasures, sessions that are created again, copies, readers and followers, from
// several nodes. Then it compares what the log has with what was stored.
type Lifecycle struct {
	// Nodes are logs on one store.
	Nodes []eventlog.Log
	// Steps is what the nodes' requests are held by; nil: each operation is one step.
	Steps *Steps
	// Stored returns all that was ever stored of a session, in order.
	Stored func(session string) []StoredRecord
	// Seal and Tail seal what a session has, and what a node has of it in memory.
	Seal, Tail func(ctx context.Context, node int, session string) error
	// Purge takes from the log what was sealed before a moment; nil: it can't be.
	Purge func(ctx context.Context, node int, sealed time.Time) error
	// Restore returns an empty store to which copies, up to a sequence, can be restored;
	// nil: there is none.
	Restore func(end uint64, copies []LifecycleCopy) *LifecycleRestored
	// Beside appends to another session of the same store; nil: there is none.
	Beside func(ctx context.Context) error
	// Open opens one node more, and closes it; nil: none can be.
	Open func(ctx context.Context) error
	// Resume is a follower that reads on from its cursor, which it moves.
	Resume func(ctx context.Context, node int, session string, at *uint64, known *bool, yield func(eventlog.Record) bool) error
	// Finish finishes the erasure of a session whose node has died, as another node
	// does; nil: none does.
	Finish func(ctx context.Context, session string) error
	// Left returns what the store has of a session that was stored for records
	// before first; unsure: also of appends whose outcome nobody knows.
	Left func(ctx context.Context, session string, first uint64, unsure bool) ([]string, error)
	// LargePoint is what the points begin with at which a large payload is stored; empty: with its
	// record.
	LargePoint string
	// Large is the size of a large payload in bytes; 0: 260 KiB.
	Large int
	// Secrets, if not nil, is called with texts that must be gone at the end, and
	// erasures must say that they are.
	Secrets func(text string)
	// Note, if not nil, receives each operation that was chosen and its result, in order, and
	// at the end a digest of all requests. If a seed fails, they are in Run's error.
	Note func(line string)
}

// LifecycleCopy is what was copied of a session.
type LifecycleCopy struct {
	Session string
	Floor   uint64
	Records []eventlog.Copied
}

// StoredRecord is a record, or the tombstone of an erasure, as it was stored.
type StoredRecord struct {
	Sequence, Previous uint64
	Tombstone          bool
	// Created: it is of an append that could only create a session, if none was erased
	// after the record Since.
	Created bool
	Since   uint64
	Writer  string
	Ordinal uint64
}

// Bounds of a simulation.
const (
	lifeActors   = 4
	lifeSessions = 2
	lifeEach     = 7    // operations of an actor, at most
	lifeErasure  = 200  // turns, of all actors, that an erasure and what comes after it may take
	lifeRestores = 5    // one of so many operations begins a restore, where there can be one
	lifeBriefs   = 3    // one of so many simulations is brief
	lifeLines    = 1000 // of the trace in an error, the last ones
)

// life is one simulation.
type life struct {
	*Lifecycle
	ctx          context.Context
	seed         uint64
	name         string // what its appends' ids begin with
	sessions     []string
	appends      []*lifeAppend
	past         []*lifeAppend // those that what it was restored from has had
	reads        []*lifeRead
	trims        []lifeTrim
	heads        map[string][]uint64 // that a session had
	copies       map[string]LifecycleCopy
	copied       uint64                   // up to which sequence
	running      map[*time.Time]bool      // since when each operation, or late message, is under way
	restored     *lifeRestored            // what became of its copies; nil: they were not restored
	origin       map[string]LifecycleCopy // what it was restored from
	retains      bool                     // many purges and trims
	brief        bool                     // few operations: what is left of a session is met in the next one of its id
	large, texts int                      // one of so many payloads is large, and has one of so many texts
	favours      []int                    // operations of which there are many
	together     *lifeOp                  // what all actors begin with, on one session; nil: each with its own
	errs         []error
	trace        []string
}

// lifeAppend is one append.
type lifeAppend struct {
	session, id string
	expected    uint64
	payloads    [][]byte
	last        uint64
	fate        fate
}

// lifeRead is what one read, or one follower, got.
type lifeRead struct {
	what, session string
	from          uint64
	got           []eventlog.Record
	err           error
	before        int    // what was stored when it began
	whole         bool   // it ends at the head, unless err says why not
	upTo          uint64 // or here
}

// lifeTrim is what a trim has answered.
type lifeTrim struct {
	session     string
	upTo, floor uint64
}

// Purposes of random numbers. Each purpose, and each operation, has its own generator, so that
// what an actor does next depends on the seed and not on how its requests end.
const (
	lifeWorld  = iota // sessions, actors, and which operations are frequent
	lifeTurns         // which actor has the next turn
	lifeFaults        // which messages are lost or late
	lifePast          // what happens before the actors begin
	lifeFirst         // operations of the first actor; those of the others follow
	lifeThere  = 1000 // those of the first actor in a restored store
	lifeLast   = 2000 // what is appended at the end
)

// rngOf returns the nth generator of random numbers for a purpose.
func rngOf(seed, purpose, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, purpose<<32+n))
}

// Run runs the simulation of a seed. Its error says what is wrong, and lists the operations.
//
// The operations that each actor chooses depend on the seed alone; in a restored store also
// on which sessions were copied. The order of all requests, and so their results, repeat
// if Nodes are on a store that was empty and no request times out.
func (l *Lifecycle) Run(ctx context.Context, seed uint64) error {
	rng := rngOf(seed, lifeWorld, 0)
	steps := l.Steps
	if steps == nil {
		steps = &Steps{}
	}
	s := &life{Lifecycle: l, ctx: ctx, seed: seed, name: "w", running: map[*time.Time]bool{},
		heads: map[string][]uint64{}, copies: map[string]LifecycleCopy{}, retains: rng.IntN(2) == 0,
		large: []int{6, 6, 2, 1}[rng.IntN(4)], texts: 1 + rng.IntN(2)}
	for i := range 1 + rng.IntN(lifeSessions) {
		s.sessions = append(s.sessions, fmt.Sprintf("s%d-%d", seed, i))
	}
	for range rng.IntN(3) {
		s.favours = append(s.favours, rng.IntN(len(lifeOps)))
	}
	if rng.IntN(2) == 0 {
		ops := lifeOps
		if s.retains {
			ops = ops[lifeRetention:lifeRetentionEnd]
		}
		s.together = &ops[rng.IntN(len(ops))]
	}
	if rng.IntN(lifeBriefs) == 0 { // append twice as often as erase, with payloads that were there before
		s.brief, s.together, s.favours = true, nil, []int{0, 0, lifeRetention}
		s.sessions, s.large, s.texts = s.sessions[:1], 3, 1
	}
	*steps = *newSteps(rngOf(seed, lifeTurns, 0))
	s.faults(steps, rng.IntN(2) == 0 && s.Steps != nil, 8-5*rng.IntN(2))
	first := s.actor(steps, 0, lifePast, nil)
	first.rng = rngOf(seed, lifePast, 0)
	for _, session := range s.sessions {
		first.past(ctx, session)
	}
	for i := range uint64(2 + rng.IntN(lifeActors-1)) {
		a := s.actor(steps, int(i)%len(l.Nodes), lifeFirst+i, nil)
		steps.Go(ctx, a.run)
	}
	steps.Run()
	last := s.actor(steps, 0, lifeLast, nil)
	last.rng = rngOf(seed, lifeLast, 0)
	last.again(ctx)
	s.check()
	s.checkRestored()
	s.trace = append(s.trace, "requests: "+steps.Digest())
	if l.Note != nil {
		for _, line := range s.trace {
			l.Note(line)
		}
	}
	if len(s.errs) == 0 {
		return nil
	}
	for _, line := range s.trace[max(0, len(s.trace)-lifeLines):] {
		s.errs = append(s.errs, errors.New(line))
	}
	return fmt.Errorf("%s=%d: %w", SeedVariable, seed, errors.Join(s.errs...))
}

// faults says what becomes of messages: if there are some, one of so many that are published may
// be lost, late, or go unanswered, and a node may die after a request that changes something.
// Before any request a node may stall. In a brief simulation many large payloads are late: some
// arrive when their session was erased and created again.
func (s *life) faults(steps *Steps, some bool, one int) {
	rng := rngOf(s.seed, lifeFaults, 0)
	steps.Sent = func(ctx context.Context) (arrived func()) {
		_, arrived = s.under(ctx)
		return arrived
	}
	stalls := rng.IntN(2) == 0 && s.Steps != nil
	steps.Waits = func() int { return []int{0, 10, rng.IntN(2 * lifeErasure), 1000}[rng.IntN(4)] }
	steps.Fault = func(point string) Delivery {
		switch {
		case s.brief && s.LargePoint != "" && strings.HasPrefix(point, s.LargePoint) && rng.IntN(2) == 0:
			return []Delivery{Late, Late, Stalled, Died}[rng.IntN(4)]
		case stalls && (strings.HasPrefix(point, "publish ") && rng.IntN(6) == 0 || rng.IntN(40) == 0):
			return Stalled
		case !some || rng.IntN(one) > 0:
		case strings.HasPrefix(point, RestorePoint):
			if rng.IntN(4) == 0 { // it has no second try
				return []Delivery{Lost, Unanswered, Late, Died}[rng.IntN(4)]
			}
		case strings.HasPrefix(point, "publish "):
			return []Delivery{Lost, Unanswered, Late, Late, Died, Died}[rng.IntN(6)]
		case point == "mark", point == "delete", point == "purge":
			if rng.IntN(4) == 0 { // there are many
				return Died
			}
		}
		return Delivered
	}
}

// sinceKey is of when a context's operation began.
type sinceKey struct{}

// under notes that something is under way until it has ended. A message of an operation is
// from when that began: it goes by what the operation had read.
func (s *life) under(ctx context.Context) (op context.Context, ended func()) {
	since, ok := ctx.Value(sinceKey{}).(time.Time)
	if !ok {
		since = time.Now()
		ctx = context.WithValue(ctx, sinceKey{}, since)
	}
	s.running[&since] = true
	return ctx, func() { delete(s.running, &since) }
}

func (s *life) failf(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}
