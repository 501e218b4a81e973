package checker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// Node is a node that serves.
type Node struct {
	Name    string
	API     *client.Client // to compare what the nodes say
	Clients *client.Client // by which clients reach it; that way may break
	// Earlier says that the node is of an earlier version: the state that it shows may lack
	// fields that this version knows.
	Earlier bool
}

// Options say how a deployment is used.
type Options struct {
	// Nodes returns the nodes that clients use at this moment, at least one. Each of them
	// serves when [Checker.Check] is called.
	Nodes func() []Node
	// Seed is that of everything that is drawn.
	Seed uint64
	// Sessions is how many are busy at a time, 2 or more.
	Sessions int
	// Agents are drawn from; a name may be there twice. Nil: those of [Checker.Config].
	Agents []string
	// Pause is about how long a producer waits between two appends; 0: the longer, the more
	// sessions there are.
	Pause time.Duration
	// PowerFails says that what was read of an unsynced log may be lost: see
	// [Checker.PowerFailed].
	PowerFails bool
	// Once says that no tool call may be made again after its result was recorded: there
	// is one node, and it never continues after others took it for dead.
	Once bool
}

// Checker has what clients were promised so far.
type Checker struct {
	Options
	tools *tools
	calm  map[string]string // by agent, the outcome of a session that was left alone

	ctx  context.Context // ends with the first violation
	fail context.CancelCauseFunc
	// settled ends when no more is begun: what is under way comes to its end.
	settled context.Context
	settle  context.CancelFunc

	load, audits sync.WaitGroup
	stopAudit    func()

	power  atomic.Int64 // power losses
	deaths atomic.Int64 // of nodes

	mu      sync.Mutex
	ledgers map[string]*ledger
	notes   map[string]int // what is worth telling, how often
}

// New returns a checker, whose tools serve until [Checker.Close].
func New(ctx context.Context, o Options) (c *Checker, err error) {
	if o.Agents == nil {
		o.Agents = []string{agentBoss, agentWalker, agentWalker}
	}
	c = &Checker{Options: o, ledgers: map[string]*ledger{}, notes: map[string]int{}}
	c.ctx, c.fail = context.WithCancelCause(ctx)
	c.settled, c.settle = context.WithCancel(c.ctx)
	c.tools, err = startTools(c)
	return c, err
}

// Close ends what is under way.
func (c *Checker) Close() {
	c.fail(nil)
	c.settle()
	c.load.Wait()
	c.audits.Wait()
	c.tools.Stop()
}

// Context ends with the first broken promise, which is its cause, and with
// [Checker.Close].
func (c *Checker) Context() context.Context { return c.ctx }

// Learn leaves a session of each agent alone, and remembers what comes of it: all others
// must come to the same end.
func (c *Checker) Learn() error {
	c.calm = map[string]string{}
	u := c.newUser(0)
	for _, agent := range slices.Compact(slices.Sorted(slices.Values(c.Agents))) {
		session := "calm-" + agent
		u.play(session, agent)
		got, err := c.outcome(session)
		if err != nil {
			return cmp.Or(context.Cause(c.ctx), err)
		}
		c.calm[agent] = strings.ReplaceAll(got, session, "SESSION")
	}
	return nil
}

// Load begins to use the deployment, and to look at sessions at random.
func (c *Checker) Load() {
	for i := range c.Sessions / 2 {
		c.load.Go(func() { c.produce(i) })
		c.load.Go(func() { c.newUser(i + 1).use() })
	}
	stop := make(chan struct{})
	c.stopAudit = sync.OnceFunc(func() { close(stop) })
	c.audits.Go(func() { c.audit(stop) })
}

// Settle begins no more sessions and appends.
func (c *Checker) Settle() { c.settle() }

// restWithin is how long what was broken may take to come to its end by
// itself.
const restWithin = 4 * time.Minute

// Rest settles, and waits until every session has come to its end without help.
func (c *Checker) Rest() error {
	c.settle()
	done := make(chan struct{})
	go func() {
		c.load.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-c.ctx.Done():
	case <-time.After(restWithin):
		c.Violate("", nil, "sessions come to their end %s after the last fault: they have not. Waiting: %s", restWithin, c.waiting())
	}
	<-done
	c.stopAudit()
	c.audits.Wait()
	return context.Cause(c.ctx)
}

// PowerFailed says that a node has lost what was not synced.
func (c *Checker) PowerFailed() { c.power.Add(1) }

// Died says that a node was killed.
func (c *Checker) Died() { c.deaths.Add(1) }

func (c *Checker) random(purpose string, i int) *rand.Rand {
	return deployment.Random(c.Seed, purpose, i)
}

// Note counts what is no violation but worth telling. The first of its kind is
// printed.
func (c *Checker) Note(what, format string, args ...any) {
	c.mu.Lock()
	c.notes[what]++
	n := c.notes[what]
	c.mu.Unlock()
	if n == 1 {
		deployment.Say("note: %s: %s", what, fmt.Sprintf(format, args...))
	}
}

func (c *Checker) noted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c.notes)) {
		all = append(all, fmt.Sprintf("%d× %s", c.notes[what], what))
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, "; ")
}

// violation is a promise that was not held.
type violation struct {
	after     time.Duration
	session   string
	sequences []uint64
	what      string
}

func (v *violation) Error() string {
	text := fmt.Sprintf("after %.2fs", v.after.Seconds())
	if v.session != "" {
		text += ", session " + v.session
	}
	if len(v.sequences) > 0 {
		text += fmt.Sprintf(", sequences %v", v.sequences)
	}
	return text + ": " + v.what
}

// Violate says that a promise is broken, of a session if it is known. It ends
// [Checker.Context].
func (c *Checker) Violate(session string, sequences []uint64, format string, args ...any) {
	if c.ctx.Err() != nil {
		return
	}
	v := &violation{time.Since(deployment.Began), session, sequences, fmt.Sprintf(format, args...)}
	deployment.Say("VIOLATION %v", v)
	c.fail(v)
}

func (c *Checker) broken(l *ledger, err error) {
	var sequences []uint64
	if p, ok := errors.AsType[*evidence.Problem](err); ok {
		sequences = p.Sequences
	}
	c.Violate(l.session, sequences, "%v", err)
}

// Sleep waits, and reports whether no promise was broken so far.
func (c *Checker) Sleep(d time.Duration) bool { return deployment.Sleep(c.ctx, d) == nil }
