package operate

import (
	"context"
	"iter"
	"sync"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot/backup"
)

const (
	// atOnce is how many sessions are written, or compared, at the same time: each write
	// waits for the servers.
	atOnce = 16
	// heldBytes bounds the records of a session that is written beside others. A larger
	// one is written as it is read.
	heldBytes = 2 << 20
	// recordBytes is what a record takes beside its payload, about.
	recordBytes = 256
)

// group runs functions, at most atOnce at the same time, until one fails.
type group struct {
	places chan struct{}
	all    sync.WaitGroup

	mu  sync.Mutex
	err error // the first one
}

func newGroup() *group { return &group{places: make(chan struct{}, atOnce)} }

// run runs f when there is a place, and returns the error of one that has failed.
func (g *group) run(f func() error) error {
	if err := g.failed(); err != nil {
		return err
	}
	g.places <- struct{}{}
	g.all.Go(func() {
		defer func() { <-g.places }()
		if err := f(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.err == nil {
				g.err = err
			}
		}
	})
	return nil
}

func (g *group) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// wait waits for all functions.
func (g *group) wait() error {
	g.all.Wait()
	return g.failed()
}

// besideSessions writes sessions beside each other. An error is that of a later call, or
// of the group's wait.
type besideSessions struct {
	backup.Sessions
	group *group
}

// Session implements backup.Sessions.
func (b besideSessions) Session(ctx context.Context, session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) (int, error) {
	next, stop := iter.Pull2(records)
	defer stop()
	var held []eventlog.Copied
	size := 0
	for {
		c, err, more := next()
		if err != nil {
			return len(held), err
		}
		if !more {
			break
		}
		held = append(held, c)
		if size += len(c.Payload) + recordBytes; size > heldBytes {
			return b.Sessions.Session(ctx, session, floor, func(yield func(eventlog.Copied, error) bool) {
				for _, c := range held {
					if !yield(c, nil) {
						return
					}
				}
				held = nil
				for c, err, more := next(); more; c, err, more = next() {
					if !yield(c, err) {
						return
					}
				}
			})
		}
	}
	return len(held), b.group.run(func() error {
		_, err := b.Sessions.Session(ctx, session, floor, func(yield func(eventlog.Copied, error) bool) {
			for _, c := range held {
				if !yield(c, nil) {
					return
				}
			}
		})
		return err
	})
}
