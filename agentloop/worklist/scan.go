package worklist

import (
	"context"
	"slices"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

const (
	// scanEvery is how often the list is read for trees of which no node was
	// notified.
	scanEvery = 10 * time.Second
	// neglected is the time after which a node drives a tree that another live node
	// should drive and does not.
	neglected = 15 * time.Second
	// maxWoken is how many wishes to be taken up may wait.
	maxWoken = 256
	// At most offers trees are taken up in a row, then there is a pause: after
	// a restart there may be thousands.
	offers     = 64
	offerPause = 50 * time.Millisecond
)

// Serve begins to take trees up, for a loop that has this work list. It returns when
// other nodes had time to say that they are there.
func (l *Worklist) Serve(loop Loop) error {
	l.loop = loop
	if err := l.listen(); err != nil {
		return err
	}
	l.mu.Lock()
	l.heard = time.Now()
	l.mu.Unlock()
	l.publish(stateHello)
	if err := eventlog.Sleep(l.ctx, askTimeout); err != nil {
		return err
	}
	l.lookSoon()
	l.wg.Go(l.live)
	l.wg.Go(l.scan)
	l.wg.Go(l.answerWakes)
	return nil
}

// Leave announces that this node drains, so that other nodes drive its share.
func (l *Worklist) Leave() {
	l.mu.Lock()
	l.leaving = true
	l.mu.Unlock()
	l.unhost()
	if l.loop != nil {
		l.publish(stateLeaving)
	}
}

// Close says that this node drives nothing any more, and ends. It is
// idempotent.
func (l *Worklist) Close() {
	if l.ctx.Err() == nil && l.loop != nil {
		l.publish(stateGone)
		_ = l.nc.FlushTimeout(askTimeout) // best effort: it is missed soon
	}
	l.stop()
	l.unhost()
	for _, s := range l.subs {
		_ = s.Unsubscribe() // fails only on a closed connection
	}
	l.wg.Wait()
}

// live announces that this node lives, and finds nodes that do not.
func (l *Worklist) live() {
	every := time.NewTicker(beat)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			l.publish(stateHere)
			l.judge()
			l.overdue()
			l.opts.Metrics.live(len(l.Peers()) + 1)
		case <-l.ctx.Done():
			return
		}
	}
}

// lookSoon has the list looked through.
func (l *Worklist) lookSoon() {
	select {
	case l.look <- struct{}{}:
	default:
	}
}

func (l *Worklist) scan() {
	every := time.NewTicker(scanEvery)
	defer every.Stop()
	for {
		select {
		case <-l.look:
			l.lookThrough()
		case <-every.C:
			l.lookThrough()
		case <-l.ctx.Done():
			return
		}
	}
}

// answerWakes drives the trees that other nodes ask for.
func (l *Worklist) answerWakes() {
	for {
		select {
		case t := <-l.woke:
			if l.hosts(t.tree) && (t.here || l.mine(t.tree)) {
				l.offer([]tree{t.tree}, time.Now())
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// lookThrough drives this node's share of the trees on the list that no node
// holds.
func (l *Worklist) lookThrough() {
	ctx, cancel := context.WithTimeout(l.ctx, l.patience(tryTimeout, maxTryTimeout))
	info, err := l.stream.Info(ctx, natsjs.WithSubjectFilter(subjects+">"))
	cancel()
	if err != nil {
		l.opts.Metrics.failed()
		l.lookAgain("can't read the list of runs", err)
		return
	}
	l.failures.Store(0)
	var trees []tree
	for subject := range info.State.Subjects {
		if t, ok := treeOf(subject); ok && l.hosts(t) && !l.loop.Holds(t.session, 0) {
			trees = append(trees, t)
		}
	}
	trees = l.unheld(trees)
	since := make(map[tree]time.Time, len(trees))
	for _, t := range trees {
		if since[t] = l.since[t]; since[t].IsZero() {
			since[t] = info.TimeStamp
		}
	}
	l.since = since
	l.opts.Metrics.saw(len(info.State.Subjects), len(trees))
	l.offer(slices.DeleteFunc(trees, func(t tree) bool {
		return !l.mine(t) && info.TimeStamp.Sub(since[t]) < neglected
	}), info.TimeStamp)
}

// hosts reports whether this node can take the tree up.
func (l *Worklist) hosts(t tree) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.leaving && slices.Contains(l.loop.AgentTypes(), t.agentType)
}

// lookAgain has the list read again after a pause: no node has answered.
func (l *Worklist) lookAgain(what string, err error) {
	if l.ctx.Err() != nil {
		return
	}
	l.opts.Logger.Warn(what, "error", err)
	wait := l.patience(retryPause, scanEvery)
	l.failures.Add(1)
	if eventlog.Sleep(l.ctx, wait) == nil {
		l.lookSoon()
	}
}

// patience is a time that doubles with each failure in a row.
func (l *Worklist) patience(least, most time.Duration) time.Duration {
	return min(least<<min(l.failures.Load(), 16), most)
}
