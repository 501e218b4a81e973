package logtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// liver is one actor.
type liver struct {
	*life
	steps *Steps
	node  int
	id    uint64     // of its choices
	rng   *rand.Rand // of its operation
	calls int
	known map[string]uint64 // a head that it once knew
}

// actor returns an actor on a node, with heads that it knows.
func (s *life) actor(steps *Steps, node int, id uint64, known map[string]uint64) *liver {
	if known == nil {
		known = map[string]uint64{}
	}
	return &liver{life: s, steps: steps, node: node, id: id, known: known}
}

func (a *liver) log() eventlog.Log { return a.Nodes[a.node] }

// lifeChoice is an operation that an actor has chosen.
type lifeChoice struct {
	op      *lifeOp
	session string
	restore bool // if copies can be, and were not yet
}

func (c lifeChoice) String() string {
	if c.restore {
		return fmt.Sprintf("begin restore, else %s %s", c.op.name, c.session)
	}
	return fmt.Sprintf("begin %s %s", c.op.name, c.session)
}

// choose returns the actor's operations.
func (a *liver) choose() (all []lifeChoice) {
	rng := rngOf(a.seed, a.id, 0)
	least, most := 2, lifeEach
	if a.brief {
		least, most = 1, 3
	}
	for i := range least + rng.IntN(most-least+1) {
		c := lifeChoice{session: a.sessions[rng.IntN(len(a.sessions))]}
		c.restore = rng.IntN(lifeRestores) == 0 && a.Restore != nil
		n, favoured := rng.IntN(100), rng.IntN(2) == 0
		switch {
		case i == 0 && a.together != nil:
			c = lifeChoice{op: a.together, session: a.sessions[0]}
		case (favoured || a.brief) && len(a.favours) > 0:
			c.op = &lifeOps[a.favours[n%len(a.favours)]]
		default:
			c.op = opAt(n, a.retains)
		}
		all = append(all, c)
	}
	return all
}

// opAt returns the operation at a place from 0 to 99.
func opAt(n int, retains bool) *lifeOp {
	for i := range lifeOps {
		weight := lifeOps[i].commonly
		if retains {
			weight = lifeOps[i].retained
		}
		if n -= weight; n < 0 {
			return &lifeOps[i]
		}
	}
	panic("logtest: the weights of operations add up to less than 100")
}

func (a *liver) run(ctx context.Context) {
	for i, c := range a.choose() {
		a.steps.Yield(ctx)
		ctx, ended := a.under(ctx)
		a.rng = rngOf(a.seed, a.id, uint64(i+1))
		if a.note("%s", c); c.restore && a.restored == nil {
			a.restore(ctx)
		} else {
			c.op.run(a, ctx, c.session)
		}
		ended()
		a.steps.Restart(ctx)
	}
}

// note notes what an actor does.
func (a *liver) note(format string, args ...any) {
	a.trace = append(a.trace, fmt.Sprintf("actor %d on node %d: ", a.id, a.node)+fmt.Sprintf(format, args...))
}

// tell records the answer of an operation.
func (a *liver) tell(what, session string, err error, args ...any) {
	a.note("%s %s %v: %v", what, session, args, err)
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
	name               string
	commonly, retained int
	run                func(*liver, context.Context, string)
}

// lifeOps are the operations, and how often they come: commonly, and where there is much
// to purge and trim.
var lifeOps = []lifeOp{
	{"append", 40, 22, (*liver).append},
	{"tail", 8, 8, (*liver).tail},
	{"erase", 12, 12, (*liver).erase},
	{"seal", 6, 12, (*liver).seal},
	{"purge", 6, 12, (*liver).purge},
	{"trim", 4, 16, (*liver).trim},
	{"read", 8, 6, (*liver).read},
	{"copy", 5, 4, (*liver).copy},
	{"follow", 8, 6, (*liver).follow},
	{"open", 3, 2, (*liver).open},
}

// Of lifeOps, those from erase to trim move or remove what is stored.
const lifeRetention, lifeRetentionEnd = 2, 6

// past gives a session several segments, and has a purge take what they hold.
func (a *liver) past(ctx context.Context, session string) {
	if !a.retains {
		return
	}
	for range a.rng.IntN(5) {
		a.appendBehind(ctx, session, a.known[session], a.large)
		a.seal(ctx, session)
	}
	if a.rng.IntN(3) > 0 {
		a.purge(ctx, session)
	}
}

// again appends to each session once more, in half of the simulations, and creates those that are
// not there. A large payload may have arrived that was sent for an erased session of the id: what
// is appended now must not rely on it.
func (a *liver) again(ctx context.Context) {
	if a.rng.IntN(2) == 0 {
		return
	}
	for _, session := range a.sessions {
		if a.Finish != nil {
			a.expect("finish", session, a.Finish(ctx, session))
		}
		head, err := a.log().Head(ctx, session)
		a.expect("head", session, err, eventlog.ErrSessionNotFound)
		if a.known[session] = head; head == 0 {
			a.appendBehind(ctx, session, 0, 0)
		}
		a.appendBehind(ctx, session, a.known[session], 1)
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
	a.appendBehind(ctx, session, expected, a.large)
}

// appendBehind appends records of which one of so many has a large payload; 0: none has.
func (a *liver) appendBehind(ctx context.Context, session string, expected uint64, large int) {
	a.calls++
	call := &lifeAppend{session: session, id: fmt.Sprintf("%s%d-%d-%d", a.name, a.seed, a.id, a.calls), expected: expected, fate: unknown}
	a.appends = append(a.appends, call)
	var entries []eventlog.Entry
	for i := range 1 + a.rng.IntN(3) {
		e := Text(session, fmt.Sprintf("secret %s.%d", call.id, i))
		if large > 0 && a.rng.IntN(large) == 0 { // of few, so that they are met again
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
	if call.fate = fateOf(err); a.steps.Died(ctx) { // be it while it cleaned up, which ends with no error of its own
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
	r.got, r.err = collectErr(a.log().Read(ctx, session, 0, 0))
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
