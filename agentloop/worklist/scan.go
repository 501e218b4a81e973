package worklist

import (
	"slices"
	"time"

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
			l.opts.Metrics.nodes.Set(float64(len(l.Peers()) + 1))
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
	every := time.NewTicker(l.opts.scanEvery)
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
				l.offer([]tree{t.tree}, time.Time{})
			}
		case <-l.ctx.Done():
			return
		}
	}
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
