package logtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
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
	// Large is the size of a large payload in bytes; 0: 260 KiB.
	Large int
	// Secrets, if not nil, is called with texts that must be gone at the end, and
	// erasures must say that they are.
	Secrets func(text string)
}

// LifecycleCopy is what was copied of a session.
type LifecycleCopy struct {
	Session string
	Floor   uint64
	Records []eventlog.Copied
}

// StoredRecord is a record, or the fence of an erasure, as it was stored.
type StoredRecord struct {
	Sequence, Previous uint64
	Fence              bool
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
	lifeEach     = 7   // operations of an actor, at most
	lifeErasure  = 200 // turns, of all actors, that an erasure and what comes after it may take
	lifeRestores = 5   // one of so many operations begins a restore, where there can be one
)

// life is one simulation.
type life struct {
	*Lifecycle
	ctx          context.Context
	seed         uint64
	name         string // what its appends' ids begin with
	rng          *rand.Rand
	sessions     []string
	appends      []*lifeAppend
	past         []*lifeAppend // those that what it was restored from has had
	reads        []*lifeRead
	trims        []lifeTrim
	heads        map[string][]uint64 // that a session had
	copies       map[string]LifecycleCopy
	copied       uint64                                // up to which sequence
	running      map[*time.Time]bool                   // since when each operation, or late message, is under way
	restored     *lifeRestored                         // what became of its copies; nil: they were not restored
	origin       map[string]LifecycleCopy              // what it was restored from
	retains      bool                                  // many purges and trims
	large, texts int                                   // one of so many payloads is large, and has one of so many texts
	favours      []int                                 // operations of which there are many
	together     func(*liver, context.Context, string) // what all actors begin with, on one session; nil: each with its own
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

// Run runs the simulation of a seed. Its error says what is wrong.
func (l *Lifecycle) Run(ctx context.Context, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	steps := l.Steps
	if steps == nil {
		steps = &Steps{}
	}
	s := &life{Lifecycle: l, ctx: ctx, seed: seed, name: "w", rng: rng, running: map[*time.Time]bool{},
		heads: map[string][]uint64{}, copies: map[string]LifecycleCopy{}, retains: rng.IntN(2) == 0,
		large: []int{6, 6, 2}[rng.IntN(3)], texts: 1 + rng.IntN(2)}
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
		s.together = ops[rng.IntN(len(ops))].run
	}
	s.faults(steps)
	first := &liver{life: s, steps: steps, known: map[string]uint64{}}
	for _, session := range s.sessions {
		first.past(ctx, session)
	}
	for i := range 2 + rng.IntN(lifeActors-1) {
		a := &liver{life: s, steps: steps, node: i % len(l.Nodes), known: map[string]uint64{}}
		steps.Go(ctx, a.run)
	}
	steps.Run()
	s.check()
	s.checkRestored()
	if len(s.errs) == 0 {
		return nil
	}
	for _, line := range s.trace {
		s.errs = append(s.errs, errors.New(line))
	}
	return fmt.Errorf("%s=%d: %w", SeedVariable, seed, errors.Join(s.errs...))
}

// faults says what becomes of messages: what is published may be lost, late, or go
// unanswered, and a node may die after each request that changes something.
func (s *life) faults(steps *Steps) {
	some, one := s.rng.IntN(2) == 0 && s.Steps != nil, 8-5*s.rng.IntN(2)
	*steps = *newSteps(s.rng)
	steps.Sent = s.under
	steps.Waits = func() int { return []int{0, 10, 1000}[s.rng.IntN(3)] }
	steps.Fault = func(point string) Delivery {
		switch {
		case !some || s.rng.IntN(one) > 0:
		case strings.HasPrefix(point, RestorePoint):
			if s.rng.IntN(4) == 0 { // it has no second try
				return []Delivery{Lost, Unanswered, Late, Died}[s.rng.IntN(4)]
			}
		case strings.HasPrefix(point, "publish "):
			return []Delivery{Lost, Unanswered, Late, Late, Died, Died}[s.rng.IntN(6)]
		case point == "mark", point == "delete", point == "purge":
			if s.rng.IntN(4) == 0 { // there are many
				return Died
			}
		}
		return Delivered
	}
}

// under notes that something is under way until it has ended.
func (s *life) under() (ended func()) {
	since := time.Now()
	s.running[&since] = true
	return func() { delete(s.running, &since) }
}

func (s *life) failf(format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(format, args...))
}

// liver is one actor.
type liver struct {
	*life
	steps *Steps
	node  int
	known map[string]uint64 // a head that it once knew
}

func (a *liver) log() eventlog.Log { return a.Nodes[a.node] }

func (a *liver) run(ctx context.Context) {
	for i := range 2 + a.rng.IntN(lifeEach-1) {
		a.steps.Yield(ctx)
		ended := a.under()
		if i == 0 && a.together != nil {
			a.together(a, ctx, a.sessions[0])
		} else {
			a.op(ctx)
		}
		ended()
		a.steps.Restart(ctx)
	}
}

// tell notes the answer of an operation.
func (a *liver) tell(what, session string, err error, args ...any) {
	a.trace = append(a.trace, fmt.Sprintf("node %d: %s %s %v: %v", a.node, what, session, args, err))
}

// expect complains of errors that an operation must not end with.
func (a *liver) expect(what, session string, err error, kinds ...error) {
	a.tell(what, session, err)
	if err == nil || errors.Is(err, errDied) || errors.Is(err, eventlog.ErrOutcomeUnknown) {
		return
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return
		}
	}
	if _, ok := errors.AsType[*eventlog.ConflictError](err); ok && what != "erase" {
		return
	}
	if _, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
		return
	}
	a.failf("%s %s: %w", what, session, err)
}

// lifeOp is an operation.
type lifeOp struct {
	commonly, retained int
	run                func(*liver, context.Context, string)
}

// lifeOps are the operations, and how often they come: commonly, and where there is much
// to purge and trim.
var lifeOps = []lifeOp{
	{40, 22, (*liver).append},
	{8, 8, (*liver).tail},
	{12, 12, (*liver).erase},
	{6, 12, (*liver).seal},
	{6, 12, (*liver).purge},
	{4, 16, (*liver).trim},
	{8, 6, (*liver).read},
	{5, 4, (*liver).copy},
	{8, 6, (*liver).follow},
	{3, 2, (*liver).open},
}

// Of lifeOps, those from erase to trim move or remove what is stored.
const lifeRetention, lifeRetentionEnd = 2, 6

func (a *liver) op(ctx context.Context) {
	if a.Restore != nil && a.restored == nil && a.rng.IntN(lifeRestores) == 0 {
		a.restore(ctx)
		return
	}
	session := a.sessions[a.rng.IntN(len(a.sessions))]
	n := a.rng.IntN(100)
	if len(a.favours) > 0 && a.rng.IntN(2) == 0 {
		lifeOps[a.favours[n%len(a.favours)]].run(a, ctx, session)
		return
	}
	for _, op := range lifeOps {
		weight := op.commonly
		if a.retains {
			weight = op.retained
		}
		if n -= weight; n < 0 {
			op.run(a, ctx, session)
			return
		}
	}
}

// past gives a session several segments, and has a purge take what they hold.
func (a *liver) past(ctx context.Context, session string) {
	if !a.retains {
		return
	}
	for range a.rng.IntN(5) {
		a.appendBehind(ctx, session, a.known[session])
		a.seal(ctx, session)
	}
	if a.rng.IntN(3) > 0 {
		a.purge(ctx, session)
	}
}

func (a *liver) erase(ctx context.Context, session string) {
	_, err := a.log().Erase(ctx, session)
	a.expect("erase", session, err, eventlog.ErrSessionNotFound)
}

func (a *liver) seal(ctx context.Context, session string) {
	a.expect("seal", session, a.Seal(ctx, a.node, session), eventlog.ErrSessionNotFound)
}

func (a *liver) tail(ctx context.Context, session string) {
	a.tell("tail", session, a.Tail(ctx, a.node, session))
}

// purge leaves alone what was sealed since the oldest operation began that is under
// way, see eventlog.MinSealed.
func (a *liver) purge(ctx context.Context, session string) {
	if a.Purge == nil {
		return
	}
	if a.Beside != nil && a.rng.IntN(2) == 0 { // which the purge leaves in the same block
		a.expect("append beside", session, a.Beside(ctx))
	}
	oldest := time.Now()
	for at := range a.running {
		if at.Before(oldest) {
			oldest = *at
		}
	}
	a.expect("purge", session, a.Purge(ctx, a.node, oldest))
}

func (a *liver) open(ctx context.Context, session string) {
	if a.Open != nil {
		a.expect("open", session, a.Open(ctx))
	}
}

func (a *liver) append(ctx context.Context, session string) {
	expected := uint64(0)
	switch a.rng.IntN(4) {
	case 0:
	case 1:
		expected = a.known[session]
	default:
		head, err := a.log().Head(ctx, session)
		if err != nil {
			a.expect("head", session, err, eventlog.ErrSessionNotFound)
		}
		expected = head
	}
	a.appendBehind(ctx, session, expected)
}

func (a *liver) appendBehind(ctx context.Context, session string, expected uint64) {
	call := &lifeAppend{session: session, id: fmt.Sprintf("%s%d-%d", a.name, a.seed, len(a.appends)), expected: expected, fate: unknown}
	a.appends = append(a.appends, call)
	var entries []eventlog.Entry
	for i := range 1 + a.rng.IntN(3) {
		e := Text(session, fmt.Sprintf("secret %s.%d", call.id, i))
		if a.rng.IntN(a.large) == 0 { // of few, so that they are met again
			text := []byte(fmt.Sprintf("secret %s %d ", session, a.rng.IntN(a.texts)))
			e.Payload = bytes.Repeat(text, cmp.Or(a.Large, 260<<10)/len(text)+1)
		}
		e.Writer, e.Ordinal = call.id, uint64(i+1)
		entries = append(entries, e)
		call.payloads = append(call.payloads, bytes.Clone(e.Payload))
		if a.Secrets != nil {
			a.Secrets(secretOf(e.Payload))
		}
	}
	var err error
	call.last, err = a.log().Append(ctx, session, call.expected, entries)
	if call.fate = fateOf(err); errors.Is(err, errDied) {
		call.fate = unknown
	}
	a.expect("append", session, err, eventlog.ErrSessionNotFound)
	a.tell(call.id, session, nil, call.expected, call.last)
	if err == nil {
		a.known[session] = call.last
		a.heads[session] = append(a.heads[session], call.last)
	}
}

// secretOf is what is looked for of a payload that was erased.
func secretOf(payload []byte) string { return string(payload[:min(len(payload), 200)]) }

func (a *liver) trim(ctx context.Context, session string) {
	archive, ok := a.log().(eventlog.Archive)
	if !ok {
		return
	}
	upTo := uint64(math.MaxUint64)
	if heads := a.heads[session]; len(heads) > 0 && a.rng.IntN(3) > 0 {
		upTo = heads[a.rng.IntN(len(heads))]
	}
	floor, err := archive.Trim(ctx, session, upTo)
	a.expect("trim", session, err, eventlog.ErrSessionNotFound)
	a.tell("trimmed", session, nil, upTo, floor)
	if err == nil {
		a.trims = append(a.trims, lifeTrim{session, upTo, floor})
	}
}

func (a *liver) begin(what, session string, from uint64) *lifeRead {
	r := &lifeRead{what: what, session: session, from: from, before: len(a.Stored(session))}
	a.reads = append(a.reads, r)
	return r
}

func (a *liver) read(ctx context.Context, session string) {
	r := a.begin("read", session, 0)
	r.whole = true
	r.got, r.err = gather(a.log().Read(ctx, session, 0, 0))
	a.expect("read", session, r.err, eventlog.ErrSessionNotFound)
}

// follow is a follower that looks again now and then.
func (a *liver) follow(ctx context.Context, session string) {
	from := a.known[session]
	if a.rng.IntN(2) == 0 {
		from = 0
	}
	r := a.begin("follow", session, from)
	at, known := from, false
	for range 1 + a.rng.IntN(4) {
		r.err = a.Resume(ctx, a.node, session, &at, &known, func(rec eventlog.Record) bool {
			r.got = append(r.got, rec)
			return true
		})
		_, ahead := errors.AsType[*eventlog.CursorAheadError](r.err)
		if ahead {
			r.err = nil
		}
		if r.err != nil {
			break
		}
		pause := a.rng.IntN(8)
		if a.rng.IntN(2) == 0 { // long enough for an erasure, and for another session of the id
			pause = a.rng.IntN(lifeErasure)
		}
		for range pause {
			a.steps.Yield(ctx)
		}
	}
	a.expect("follow", session, r.err, eventlog.ErrSessionNotFound)
}

func gather(records iter.Seq2[eventlog.Record, error]) (all []eventlog.Record, err error) {
	for r, err := range records {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}
