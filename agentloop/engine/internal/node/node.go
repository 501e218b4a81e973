// Package node claims session trees for this node and has them driven: trees that a request or the
// work list names, and that no other live node drives.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Node is this node's part in driving trees.
type Node struct {
	Ctx      context.Context // ends with ErrStopping
	stop     context.CancelCauseFunc
	host     *drive.Host
	states   *snapshot.Store
	worklist agentloop.Worklist // nil: no other node shares the log
	agents   *Agents
	// superseded notifies a session's clients that another node drives its run.
	superseded func(session, run string)

	mu   sync.Mutex
	live map[string]*drivenTree
	// requested are the hooks of requests, by session.
	requested map[string][]*requestHooks
	// asked counts the requests that are being appended, by session.
	asked    map[string]int
	drains   chan struct{} // closed when the node drains
	left     chan struct{} // closed and replaced when a run has left
	suspects chan struct{} // places for suspected trees; see awaitProbation
	taking   chan struct{} // places for trees from the list that are being folded
}

func New(h *drive.Host, states *snapshot.Store, list agentloop.Worklist, agents *Agents, superseded func(session, run string)) *Node {
	n := &Node{
		host: h, states: states, worklist: list, agents: agents, superseded: superseded,
		live: map[string]*drivenTree{}, requested: map[string][]*requestHooks{}, asked: map[string]int{},
		drains: make(chan struct{}), left: make(chan struct{}), suspects: newSuspects(), taking: make(chan struct{}, maxTaking),
	}
	h.Drains, h.HandsOver, h.Spread = n.drains, n.HandsOver, n.spread
	n.Ctx, n.stop = context.WithCancelCause(context.Background())
	return n
}

// Stop ends all that the node drives, as a crash would. It does not wait.
func (n *Node) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop(agentloop.ErrStopping)
}

// Begin runs f beside the node's runs, unless the node is being stopped.
func (n *Node) Begin(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Ctx.Err() == nil {
		n.host.Goroutines.Go(f)
	}
}

// Live reports whether this node is driving the session.
func (n *Node) Live(session string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.live[session] != nil
}

// Take has the session's tree driven by this node until nothing is left to
// decide; a tree that another node which lives drives, only by force.
func (n *Node) Take(session string, force bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.take(session, 0, force)
}

// TakeUp is Take for a tree to which a request has been appended. The ticket is its place on
// the list; 0: it has none.
func (n *Node) TakeUp(t *projector.Tree, ticket uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin(t)
	n.take(t.SessionID, ticket, false)
}

// take is Take. The caller has the lock.
func (n *Node) take(session string, ticket uint64, force bool) {
	if run := n.live[session]; run != nil {
		run.force = run.force || force
		run.ask(ticket)
		return
	}
	run := newDriven()
	run.force = force
	run.ask(ticket)
	run.again = false
	n.launch(session, run)
}

// launch begins to drive. The caller has the lock.
func (n *Node) launch(session string, run *drivenTree) {
	if n.Ctx.Err() != nil {
		return
	}
	n.live[session] = run
	n.host.Metrics.Drives(1)
	n.host.Goroutines.Go(func() { n.keep(session, run) })
}

// maxTaking is how many trees from the list are folded and claimed at once:
// after a restart there may be thousands.
const maxTaking = 32

// Pauses before a run that broke off is taken up again.
const (
	minHoldPause = 100 * time.Millisecond
	maxHoldPause = 30 * time.Second
)

// keep holds the tree until nothing is left to decide, another node has taken
// it over, or the loop stops. A log that is out of reach for a while is no end:
// a new claim finds out what became of the last append.
func (n *Node) keep(session string, run *drivenTree) {
	for pause := minHoldPause; ; pause = min(2*pause, maxHoldPause) {
		began := time.Now()
		err := n.holdSafely(session, run)
		if time.Since(began) > maxHoldPause { // it went well for a while
			pause = minHoldPause
		}
		retry, idle, handed := false, false, false // handed over to another node
		log := n.host.Logger.With(eventlog.LogSession, session, eventlog.LogRun, run.id)
		switch {
		case err == nil:
			idle = true
		case errors.Is(err, agentloop.ErrStopping), n.Ctx.Err() != nil:
		case errors.Is(err, errHeld):
		case errors.Is(err, drive.ErrSpread):
			handed = true
			n.host.Metrics.LostTo("spread")
			log.Debug("run handed over to a node that is less busy")
		case errors.Is(err, drive.ErrHandedOver):
			handed = true
			n.host.Metrics.LostTo("drained")
			log.Info("run handed over: this node drains")
		case errors.Is(err, eventlog.ErrSuperseded):
			n.lost(session, run, log)
		case errors.Is(err, eventlog.ErrSessionNotFound):
			idle = true
			log.Info("run stopped: the session was erased")
		case errors.Is(err, eventlog.ErrClosed), errors.Is(err, agentloop.ErrUnknownAgent), errors.Is(err, eventlog.ErrStreamEnded),
			n.worklist == nil && (errors.Is(err, drive.ErrPanicked) || errors.Is(err, drive.ErrStuck)):
			idle = errors.Is(err, eventlog.ErrStreamEnded) // only a new run changes that
			log.Error("run stopped", "error", err)
		default:
			again := errors.Is(err, drive.ErrPanicked) || errors.Is(err, drive.ErrStuck) // it will come again, most likely
			if handed = n.HandsOver(run.agent); handed || again && n.Draining() {
				log.Error("run broke off and is left to other nodes: this node drains", "error", err)
				break
			}
			if retry = true; again {
				pause = maxHoldPause
			}
			log.Error("run broke off and is taken up again", "error", err, "pause", pause)
			n.pauses(run, true)
			n.rest(run, pause)
			n.pauses(run, false)
		}
		n.mu.Lock()
		if n.Ctx.Err() != nil || !retry && !run.again {
			delete(n.live, session)
			n.host.Metrics.Drives(-1)
			n.forgetBegun(session)
			to := run.to
			close(n.left)
			n.left = make(chan struct{})
			n.mu.Unlock()
			switch {
			case idle && run.agreed:
				n.remove(session, run)
			case handed:
				n.worklist.Wake(to, run.agent, session)
			}
			return
		}
		if run.again {
			run.again, run.held, run.claimed, run.to, pause = false, 0, false, "", minHoldPause
		}
		n.mu.Unlock()
	}
}

// lost tells that another node has taken the tree over, unless this node has not driven it, or
// a rollback has superseded it.
func (n *Node) lost(session string, run *drivenTree, log *slog.Logger) {
	if !run.claimed {
		log.Debug("another node was first to claim the run")
		return
	}
	if t, err := n.states.Head(n.Ctx, session); err == nil && t.Claim != nil && t.Claim.Fences() {
		log.Info("run stopped: the session was rolled back")
		return
	}
	n.host.Metrics.LostTo("superseded")
	log.Info("run taken over by another node")
	n.superseded(session, run.id)
}

// rest waits, unless there is a request for the tree or the loop begins to drain.
func (n *Node) rest(run *drivenTree, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	drains := n.drains
	if n.Draining() { // the run finishes here
		drains = nil
	}
	select {
	case <-t.C:
	case <-run.asked:
	case <-drains:
	case <-n.Ctx.Done():
	}
}

// holdSafely is hold, whose panics are errors: a state that can't be folded is
// no end of the process.
func (n *Node) holdSafely(session string, run *drivenTree) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", drive.ErrPanicked, p, debug.Stack())
		}
	}()
	if run.taken {
		select {
		case n.taking <- struct{}{}:
		case <-n.Ctx.Done():
			return context.Cause(n.Ctx)
		}
		defer run.underWay(n)
	}
	return n.hold(n.Ctx, session, run)
}

// underWay lets a further tree be taken up from the list.
func (run *drivenTree) underWay(n *Node) {
	if run.taken {
		run.taken = false
		<-n.taking
	}
}

func (n *Node) pauses(run *drivenTree, yes bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	run.pauses = yes
}
