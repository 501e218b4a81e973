package jetstream

import (
	"context"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A stray is the first append of a session that the server stored after the log had grown, at the
// place where the session would have been before; see growth. It was not acknowledged, and is not
// the session's.

// stray reports whether what partition p has of a session is no session's. If the log
// has grown meanwhile without this process, that is taken over first.
func (l *streamSet) stray(ctx context.Context, session string, p int) (bool, error) {
	if session == "" || l.partitionOf(session) == p {
		return false, nil
	}
	g, _, err := l.growthOf(ctx, len(l.places.Load().Settled))
	if err == nil && g.Phase == grown {
		err = l.takeOver(ctx, g.To)
	}
	return l.partitionOf(session) != p, err
}

// strayAge is how long after a growth the log is searched for strays.
const strayAge = time.Minute

// dropStrays removes the strays of the last growth, once.
func (l *streamSet) dropStrays(ctx context.Context, now time.Time) error {
	places := l.places.Load()
	n := len(places.Settled)
	if n == 0 || int(l.swept.Load()) == n || now.Sub(time.Unix(0, l.grownAt.Load())) < strayAge {
		return nil
	}
	for p := range places.Partitions() {
		stream := layout.LogStream(p)
		some, err := l.subjectsOf(ctx, stream, layout.LogSubjects+strconv.Itoa(p)+".*")
		if err != nil {
			return err
		}
		for session := range some {
			is, err := l.stray(ctx, session, p)
			if err != nil {
				return err
			}
			for is {
				at, err := l.firstFrom(ctx, stream, layout.LogSubject(session, p), 1)
				if err != nil {
					return err
				}
				if at == 0 {
					break
				}
				if err := l.secureDelete(ctx, stream, at); err != nil {
					return err
				}
			}
		}
	}
	l.swept.Store(int64(n))
	return nil
}
