package worklist

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	// takenWithin is how long the node that was woken for a tree has to take it up.
	takenWithin = time.Second
	// takenAtLast is after what time of failed tries the tree is left to the scan.
	takenAtLast = scanEvery
)

// wakened is a tree for which another node was woken.
type wakened struct {
	first time.Time // when
	last  time.Time // when that was repeated
	again int       // how often it was
}

// overdue has the trees driven for which another node was woken and which no node has taken
// up. It returns at once; one look at a time.
func (l *Worklist) overdue() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.following || l.gone {
		return
	}
	var due []tree
	for t, w := range l.wakened {
		if now.Sub(w.last) >= takenWithin {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return
	}
	l.following = true
	l.wg.Go(func() { l.follow(due) })
}

// follow takes such trees up that are still on the list and that no node holds. If this node
// can't, it wakes one node after the other. While the list can't be read, it does neither, and
// looks again later.
func (l *Worklist) follow(due []tree) {
	waits, unknown := map[tree]bool{}, map[tree]bool{}
	unheld := l.unheld(slices.Clone(due))
	for i, t := range unheld {
		if l.loop.Holds(t.session, 0) {
			continue
		}
		listed, err := l.listed(t)
		if err != nil { // the list may have lost its leader
			for _, t := range unheld[i:] {
				unknown[t] = true
			}
			break
		}
		waits[t] = listed // else it is finished
	}
	now := time.Now()
	var own []tree
	for _, t := range due {
		here := l.hosts(t)
		l.mu.Lock()
		w := l.wakened[t]
		if w.last, w.again = now, w.again+1; !waits[t] && !unknown[t] || waits[t] && here || now.Sub(w.first) > takenAtLast {
			delete(l.wakened, t)
		} else {
			l.wakened[t] = w
		}
		next := l.ranked(t)
		l.mu.Unlock()
		switch {
		case !waits[t]:
		case here:
			own = append(own, t)
		case len(next) > 0:
			l.publishWake(next[w.again%len(next)], t)
		}
	}
	l.mu.Lock()
	l.following = false
	l.mu.Unlock()
	l.offer(own, time.Time{}) // one that is idle is not on the list
}

// listed reports whether a tree is on the list.
func (l *Worklist) listed(t tree) (bool, error) {
	ctx, cancel := context.WithTimeout(l.ctx, tryTimeout)
	defer cancel()
	_, err := l.stream.GetLastMsgForSubject(ctx, t.subject())
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ranked returns the other nodes that host a tree's agent, the one that ranks first for it
// first. The caller has the lock.
func (l *Worklist) ranked(t tree) (nodes []string) {
	for node, p := range l.peers {
		if p.hosts(t.agentType) {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b string) int { return cmp.Compare(rank(b, t.session), rank(a, t.session)) })
	return nodes
}
