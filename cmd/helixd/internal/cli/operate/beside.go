package operate

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

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

// besideSessions writes sessions beside each other. An error is that of a later call, or
// of the group's wait.
type besideSessions struct {
	backup.Sessions
	group  *errgroup.Group // of at most atOnce
	failed context.Context // ends when one of the group has failed
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
	if b.failed.Err() != nil {
		return len(held), context.Cause(b.failed)
	}
	b.group.Go(func() error {
		_, err := b.Sessions.Session(ctx, session, floor, func(yield func(eventlog.Copied, error) bool) {
			for _, c := range held {
				if !yield(c, nil) {
					return
				}
			}
		})
		return err
	})
	return len(held), nil
}
