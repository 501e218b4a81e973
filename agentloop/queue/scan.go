package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	// ScanEvery is how often the list is read for trees of which no node was
	// notified.
	ScanEvery = 10 * time.Second
	// neglected is the time after which a node drives a tree that another live node
	// should drive and does not.
	neglected = 15 * time.Second
	// maxWoken is how many wishes to be taken up may wait.
	maxWoken = 256
	// At most takeUps trees are taken up in a row, then there is a pause: after
	// a restart there may be thousands.
	takeUps     = 64
	takeUpPause = 50 * time.Millisecond
)

// Serve begins to take trees up, for a loop that has this queue. It returns when
// other nodes had time to say that they are there.
func (q *Queue) Serve(loop Loop) error {
	q.loop = loop
	if err := q.listen(); err != nil {
		return err
	}
	q.mu.Lock()
	q.heard = time.Now()
	q.mu.Unlock()
	q.say(stateHello)
	if err := pause(q.ctx, askTimeout); err != nil {
		return err
	}
	q.lookSoon()
	q.wg.Go(q.live)
	q.wg.Go(q.scan)
	q.wg.Go(q.answerWakes)
	return nil
}

// Leave announces that this node drains, so that other nodes drive its share.
func (q *Queue) Leave() {
	q.mu.Lock()
	q.leaving = true
	q.mu.Unlock()
	q.unhost()
	if q.loop != nil {
		q.say(stateLeaving)
	}
}

// Close says that this node drives nothing any more, and ends. It is
// idempotent.
func (q *Queue) Close() {
	if q.ctx.Err() == nil && q.loop != nil {
		q.say(stateGone)
		_ = q.nc.FlushTimeout(askTimeout) // best effort: it is missed soon
	}
	q.stop()
	q.unhost()
	for _, s := range q.subs {
		_ = s.Unsubscribe() // fails only on a closed connection
	}
	q.wg.Wait()
}

// live announces that this node lives, and finds nodes that do not.
func (q *Queue) live() {
	every := time.NewTicker(beat)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			q.say(stateHere)
			q.judge()
			q.opts.Metrics.live(len(q.Peers()) + 1)
		case <-q.ctx.Done():
			return
		}
	}
}

// lookSoon has the list looked through.
func (q *Queue) lookSoon() {
	select {
	case q.look <- struct{}{}:
	default:
	}
}

func (q *Queue) scan() {
	every := time.NewTicker(ScanEvery)
	defer every.Stop()
	for {
		select {
		case <-q.look:
			q.lookThrough()
		case <-every.C:
			q.lookThrough()
		case <-q.ctx.Done():
			return
		}
	}
}

// answerWakes drives the trees that other nodes ask for.
func (q *Queue) answerWakes() {
	for {
		select {
		case t := <-q.woke:
			if q.hosts(t) && q.mine(t) {
				q.takeUp([]tree{t}, time.Now())
			}
		case <-q.ctx.Done():
			return
		}
	}
}

// lookThrough drives this node's share of the trees on the list that no node
// holds.
func (q *Queue) lookThrough() {
	ctx, cancel := context.WithTimeout(q.ctx, q.patience(tryTimeout, maxTryTimeout))
	info, err := q.stream.Info(ctx, natsjs.WithSubjectFilter(subjects+">"))
	cancel()
	if err != nil {
		q.opts.Metrics.failed()
		q.lookAgain("can't read the list of runs", err)
		return
	}
	q.failures.Store(0)
	var trees []tree
	for subject := range info.State.Subjects {
		if t, ok := treeOf(subject); ok && q.hosts(t) && !q.loop.Holds(t.session, 0) {
			trees = append(trees, t)
		}
	}
	trees = q.unheld(trees)
	since := make(map[tree]time.Time, len(trees))
	for _, t := range trees {
		if since[t] = q.since[t]; since[t].IsZero() {
			since[t] = info.TimeStamp
		}
	}
	q.since = since
	q.opts.Metrics.saw(len(info.State.Subjects), len(trees))
	q.takeUp(slices.DeleteFunc(trees, func(t tree) bool {
		return !q.mine(t) && info.TimeStamp.Sub(since[t]) < neglected
	}), info.TimeStamp)
}

// hosts reports whether this node can take the tree up.
func (q *Queue) hosts(t tree) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.leaving && slices.Contains(q.loop.AgentTypes(), t.agentType)
}

// lookAgain has the list read again after a pause: no node has answered.
func (q *Queue) lookAgain(what string, err error) {
	if q.ctx.Err() != nil {
		return
	}
	q.opts.Logger.Warn(what, "error", err)
	wait := q.patience(retryPause, ScanEvery)
	q.failures.Add(1)
	if pause(q.ctx, wait) == nil {
		q.lookSoon()
	}
}

// patience is a time that doubles with each failure in a row.
func (q *Queue) patience(least, most time.Duration) time.Duration {
	return min(least<<min(q.failures.Load(), 16), most)
}

// unheld returns those that no other live node holds.
func (q *Queue) unheld(trees []tree) []tree {
	held := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, node := range q.Peers() {
		all.Go(func() {
			for part := range slices.Chunk(trees, maxAsked) {
				what := question{Sessions: make([]string, len(part))}
				for i, t := range part {
					what.Sessions[i] = t.session
				}
				a, err := q.ask(q.ctx, node, what)
				if err != nil {
					return
				}
				mu.Lock()
				for _, session := range a.Held {
					held[session] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(trees, func(t tree) bool { return held[t.session] })
}

// takeUp has the loop take trees up. now is the server's time, which also dates
// the list's entries.
func (q *Queue) takeUp(trees []tree, now time.Time) {
	for i, t := range trees {
		if i%takeUps == takeUps-1 && pause(q.ctx, takeUpPause) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(q.ctx, tryTimeout)
		m, err := q.stream.GetLastMsgForSubject(ctx, t.subject())
		cancel()
		switch {
		case errors.Is(err, natsjs.ErrMsgNotFound): // it is idle
		case err != nil: // the list may have lost its leader
			q.lookAgain("can't take runs up", err)
			return
		default:
			q.opts.Metrics.takesUp()
			q.loop.TakeUp(t.session, m.Sequence, now.Sub(m.Time) >= q.opts.Patience)
		}
	}
}
