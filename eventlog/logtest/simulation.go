package logtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
)

// SeedVariable is the environment variable that repeats a simulation. The
// decisions are the same again; how goroutines take turns is not.
const SeedVariable = "HELIX_SEED"

const (
	simWriters = 3
	simRounds  = 250 // in a full run
	simLeast   = 20  // rounds, however long they take
	// Time that a simulation takes at most, beside its end.
	simMemory = 2 * time.Second
	simDisk   = 5 * time.Second
)

// simulation has several actors claim, append and write by turns, with faults
// and with producers that hold no claim in between, and looks at the log in
// the end.
func simulation(t *testing.T, log eventlog.Log) {
	seed := rand.Uint64()
	if s := os.Getenv(SeedVariable); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("repeat with %s=%d", SeedVariable, seed)
	budget := simDisk
	if log.Info().Durability == eventlog.DurabilityMemory {
		budget = simMemory
	}
	append1(t, log, "s", 0, "")
	var actors []*actor
	for i := range simWriters + 1 {
		actors = append(actors, &actor{
			name: string(rune('a' + i)), ctx: ctxOf(t), rng: rand.New(rand.NewPCG(seed, uint64(i))), log: &Faulty{Log: log},
		})
	}
	most := testkit.Times(simRounds)
	begin, rounds := time.Now(), 0
	for rounds < simLeast || rounds < most && time.Since(begin) < budget {
		rounds++
		var wg sync.WaitGroup
		for i, a := range actors {
			wg.Go(func() { a.play(i == simWriters) })
		}
		wg.Wait()
	}
	var all []*author
	for _, a := range actors {
		for _, p := range a.authors {
			if p.w != nil {
				p.w.Stop()
			}
		}
		a.log.Release(a.ctx) // what is still under way arrives now
		all = append(all, a.authors...)
	}
	c := checker{t: t, records: collect(t, log.Read(ctxOf(t), "s", 0, 0))}
	c.check(all)
	t.Logf("%d rounds, %d authors, %d records: %v", rounds, len(all), len(c.records), c.fates)
	require.NotZero(t, c.fates[acked], "something went well")
}

// actor is one process: it holds a claim, loses it, claims again, and now and
// then uses a claim of before.
type actor struct {
	name    string
	ctx     context.Context
	rng     *rand.Rand
	log     *Faulty
	authors []*author
}

// author is one writer id: a claim, or a producer without one.
type author struct {
	id       string
	w        *eventlog.Writer
	calls    []*said
	from     uint64 // where its observation begins
	observed []uint64
	epoch    int  // counts the flushes that reported the outcome of writes
	ended    bool // by its own account
}

// said is one call.
type said struct {
	tokens  []string
	written bool
	epoch   int
	fate    fate
}

// fate is what a caller knows of a call.
type fate string

const (
	acked   fate = "acked"
	refused fate = "refused"
	unknown fate = "unknown"
)

func fateOf(err error) fate {
	switch {
	case err == nil:
		return acked
	case errors.Is(err, eventlog.ErrOutcomeUnknown):
		return unknown
	default:
		return refused
	}
}

// play is an actor's turn of a round.
func (a *actor) play(producer bool) {
	for range a.rng.IntN(3) {
		a.log.Next(Fault(a.rng.IntN(faultKinds)))
	}
	if a.chance(10) {
		a.log.Release(a.ctx)
	}
	for range 1 + a.rng.IntN(4) {
		if producer {
			a.produce()
			continue
		}
		last := a.pick(0)
		switch {
		case last == nil, last.ended && a.chance(30), a.chance(3):
			a.claim()
		case a.chance(5):
			a.act(a.pick(a.rng.IntN(3)))
		default:
			a.act(last)
		}
	}
}

// chance is true in so many of a hundred cases.
func (a *actor) chance(percent int) bool { return a.rng.IntN(100) < percent }

// pick returns the actor's last author, or one before it.
func (a *actor) pick(before int) *author {
	if i := len(a.authors) - 1 - before; i >= 0 {
		return a.authors[i]
	}
	return nil
}

// patience returns a context that sometimes ends early.
func (a *actor) patience() (context.Context, context.CancelFunc) {
	switch {
	case a.chance(4):
		return context.WithTimeout(a.ctx, time.Duration(a.rng.IntN(3000))*time.Microsecond)
	case a.chance(2):
		ctx, cancel := context.WithCancel(a.ctx)
		cancel()
		return ctx, cancel
	}
	return context.WithCancel(a.ctx)
}

func (a *actor) newAuthor() *author {
	p := &author{id: fmt.Sprint(a.name, len(a.authors))}
	a.authors = append(a.authors, p)
	return p
}

// say returns n texts that no other call has.
func (p *author) say(n int, written bool) (*said, []eventlog.Entry) {
	c := &said{written: written, epoch: p.epoch, fate: unknown}
	var entries []eventlog.Entry
	for i := range n {
		token := fmt.Sprintf("%s.%d.%d;", p.id, len(p.calls), i)
		c.tokens, entries = append(c.tokens, token), append(entries, Text("s", token))
	}
	p.calls = append(p.calls, c)
	return c, entries
}

func (a *actor) claim() {
	status := eventlog.StreamActive
	p := a.newAuthor()
	for r, err := range a.log.Read(a.ctx, "s", 0, 0) {
		if err != nil {
			p.ended = true
			return
		}
		p.from, status = r.Sequence, status.After(r.Envelope)
	}
	p.w = eventlog.NewWriter(a.log, "s", eventlog.WriterOptions{
		ID: p.id, Head: p.from, Status: status, NoMerge: a.chance(20),
		Observe: func(r eventlog.Record) { p.observed = append(p.observed, r.Sequence) },
	})
	ctx, cancel := a.patience()
	defer cancel()
	err := p.w.Claim(ctx, &fact.RunClaimed{RunID: "run-1", Node: a.name, Attempt: 1, Base: base("s")})
	p.calls = append(p.calls, &said{fate: fateOf(err), tokens: []string{claimToken}})
	if p.ended = err != nil; p.ended {
		p.w.Stop() // who holds nothing must not write
	}
}

// act makes one call of a writer.
func (a *actor) act(p *author) {
	if p == nil || p.w == nil {
		return
	}
	ctx, cancel := a.patience()
	defer cancel()
	var err error
	switch n := a.rng.IntN(10); {
	case n < 4:
		c, entries := p.say(1+a.rng.IntN(3), false)
		err = p.w.Append(ctx, entries...)
		c.fate = fateOf(err)
	case n < 8:
		for range 1 + a.rng.IntN(20) {
			c, entries := p.say(1+a.rng.IntN(2), true)
			if err = p.w.Write(ctx, entries...); err != nil {
				c.fate = refused
			}
		}
	default:
		if err = p.w.Flush(ctx); err != nil && err == context.Cause(ctx) {
			break // it has reported nothing
		}
		for _, c := range p.calls {
			if err == nil && c.written && c.epoch == p.epoch && c.fate == unknown {
				c.fate = acked
			}
		}
		p.epoch++
	}
	p.ended = p.ended || errors.Is(err, eventlog.ErrSuperseded) || errors.Is(err, eventlog.ErrWriterBroken) ||
		errors.Is(err, eventlog.ErrOutcomeUnknown)
}

// produce appends without a claim.
func (a *actor) produce() {
	p := a.newAuthor()
	ctx, cancel := a.patience()
	defer cancel()
	head, err := a.log.Head(ctx, "s")
	if err != nil {
		return
	}
	c, entries := p.say(1+a.rng.IntN(2), false)
	switch {
	case a.chance(5):
		entries = append(entries, Fact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1}))
	case a.chance(20):
		entries = append(entries, Fact("s", &fact.RunRequested{RunID: "run-1", Mode: fact.ModeStart, Base: base("s")}))
	}
	_, err = eventlog.AppendOnce(ctx, a.log, "s", p.id, head, entries)
	c.fate = fateOf(err)
}

// claimToken represents a claim among an author's calls.
const claimToken = "claim;"

// checker holds the log against what the callers know.
type checker struct {
	t       *testing.T
	records []eventlog.Record
	fates   map[fate]int
	heard   map[string][]heard // by author, in order
}

// heard is a token where it lies: in which record, and whether alone.
type heard struct {
	token  string
	record int
	alone  bool
}

func (c *checker) check(authors []*author) {
	c.fates, c.heard = map[fate]int{}, map[string][]heard{}
	c.walk(authors)
	for _, p := range authors {
		c.checkCalls(p)
		c.checkObserved(p)
	}
}

// walk checks what holds from record to record: ordinals rise by one, each writer holds
// the last claim, and there is no record after an end.
func (c *checker) walk(authors []*author) {
	claims := map[string]bool{}
	for _, p := range authors {
		claims[p.id] = p.w != nil
	}
	holder, status, ordinals := "", eventlog.StreamActive, map[string]uint64{}
	for i, r := range c.records {
		var tokens []string
		if r.Type == "run_claimed" {
			holder, tokens = r.Writer, []string{claimToken}
		} else if r.Kind == eventlog.KindChunk {
			tokens = strings.SplitAfter(texts(c.t, c.records[i:i+1])[0], ";")
			tokens = tokens[:len(tokens)-1]
		}
		for _, token := range tokens {
			c.heard[r.Writer] = append(c.heard[r.Writer], heard{token, i, len(tokens) == 1})
		}
		ordinals[r.Writer]++
		if r.Writer != "" {
			require.Equal(c.t, ordinals[r.Writer], r.Ordinal, "record %d of %s", i, r.Writer)
		}
		if claims[r.Writer] {
			require.Equal(c.t, holder, r.Writer, "record %d is after another writer's claim", i)
			require.False(c.t, status.Refuses(r.Envelope), "record %d is after the stream's end", i)
		}
		status = status.After(r.Envelope)
	}
}

// checkCalls: an author's records in the log are its calls in order, each complete and
// once. They include all that were acknowledged and none that were refused. Of the writes
// whose outcome was never reported, none comes after one that is missing.
func (c *checker) checkCalls(p *author) {
	rest, missing := c.heard[p.id], map[int]bool{}
	for i, call := range p.calls {
		c.fates[call.fate]++
		there := len(rest) > 0 && rest[0].token == call.tokens[0]
		if there {
			require.GreaterOrEqual(c.t, len(rest), len(call.tokens), "call %d of %s is not whole", i, p.id)
			for k, token := range call.tokens {
				require.Equal(c.t, token, rest[k].token, "call %d of %s is not whole", i, p.id)
				require.True(c.t, call.written || rest[k].alone, "an append was merged")
				require.True(c.t, k == 0 || rest[k].record-rest[k-1].record <= 1, "something came between")
			}
			rest = rest[len(call.tokens):]
		}
		require.False(c.t, !there && call.fate == acked, "call %d of %s, %q, was acknowledged and is missing", i, p.id, call.tokens)
		require.False(c.t, there && call.fate == refused, "call %d of %s, %q, was refused and is there", i, p.id, call.tokens)
		if call.written && call.fate != refused {
			require.False(c.t, there && missing[call.epoch], "call %d of %s is after a gap", i, p.id)
			missing[call.epoch] = missing[call.epoch] || !there
		}
	}
	require.Empty(c.t, rest, "%s is in the log twice, or in another order", p.id)
}

// checkObserved: an author has seen every record after its start, up to where
// it stood, once and in order.
func (c *checker) checkObserved(p *author) {
	n := 0
	for _, r := range c.records {
		if r.Sequence > p.from && n < len(p.observed) {
			require.Equal(c.t, r.Sequence, p.observed[n], "what %s has observed", p.id)
			n++
		}
	}
	require.Len(c.t, p.observed, n)
}
