package worklist

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// lookThrough drives this node's share of the trees on the list that no node
// holds. That another node has died is found in peers.go.
func (l *Worklist) lookThrough() {
	ctx, cancel := context.WithTimeout(l.ctx, l.patience(tryTimeout, maxTryTimeout))
	info, err := l.stream.Info(ctx)
	var listed map[string]uint64
	if err == nil {
		listed, err = jetstream.Subjects(ctx, l.nc, Stream, subjects+">")
	}
	cancel()
	if err != nil {
		l.opts.Metrics.failures.Inc()
		l.lookAgain("can't read the list of runs", err)
		return
	}
	l.failures.Store(0)
	var trees []tree
	for subject := range listed {
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
	l.opts.Metrics.saw(len(listed), waiting(since, info.TimeStamp))
	l.offer(slices.DeleteFunc(trees, func(t tree) bool {
		return !l.mine(t) && info.TimeStamp.Sub(since[t]) < neglected
	}), info.TimeStamp)
}

// waiting counts the trees that no node has held for so long that none is about to take
// them up: on a busy list, each look finds some that were just put there or just ended.
func waiting(since map[tree]time.Time, now time.Time) (n int) {
	for _, t := range since {
		if now.Sub(t) >= neglected {
			n++
		}
	}
	return n
}

// unheld returns those that no other live node holds.
func (l *Worklist) unheld(trees []tree) []tree {
	held := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, node := range l.Peers() {
		all.Go(func() {
			for part := range slices.Chunk(trees, maxAsked) {
				what := question{Sessions: make([]string, len(part))}
				for i, t := range part {
					what.Sessions[i] = t.session
				}
				a, err := l.ask(l.ctx, node, what)
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

// offer has the loop take trees up. now is the server's time, which also dates
// the list's entries; the zero time if it is not known: no tree is then taken off the
// list before it was claimed, or a look at the list finds that it is old.
func (l *Worklist) offer(trees []tree, now time.Time) {
	for i, t := range trees {
		if i%offers == offers-1 && eventlog.Sleep(l.ctx, offerPause) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(l.ctx, tryTimeout)
		m, err := l.stream.GetLastMsgForSubject(ctx, t.subject())
		cancel()
		switch {
		case errors.Is(err, natsjs.ErrMsgNotFound): // it is idle
		case err != nil: // the list may have lost its leader
			l.lookAgain("can't take runs up", err)
			return
		default:
			l.opts.Metrics.offers.Inc()
			l.loop.Offer(t.session, m.Sequence, now.Sub(m.Time) >= l.opts.Patience)
			l.sayLoad()
		}
	}
}
