package store

import (
	"context"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// announceLate announces a stored append when it is on the disk; its caller has left
// before.
func (l *Store) announceLate(a *PendingAppend, last uint64) {
	if !l.GroupSync() {
		return
	}
	l.Spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), link.LeaderPatience)
		defer cancel()
		if l.Await(ctx, layout.StreamOf(a.Messages[0].Subject), last) == nil {
			l.announce(a, last)
		}
	})
}

// announce passes an append to this node's followers of the session, and publishes it if
// there are other subscribers. A server without GroupSync has republished it already.
func (l *Store) announce(a *PendingAppend, last uint64) {
	if !l.GroupSync() {
		return
	}
	now := time.Now()
	own := 0
	if l.Deliver != nil {
		own = l.Deliver(a, last, now)
	}
	if l.Opts.Server.Interest(layout.LiveSubject(a.Session)) <= own {
		return
	}
	at, previous := last+1-uint64(len(a.Messages)), a.Expected
	stamp := now.UTC().Format(time.RFC3339Nano)
	for i, m := range a.Messages {
		live := wire.NewMessage(m.Subject, a.Records[i], false)
		live.Subject = layout.LiveSubject(a.Session)
		for name, values := range m.Header {
			if name != wire.HeaderEnvelope {
				live.Header[name] = values
			}
		}
		live.Header[wire.HeaderSubject] = []string{m.Subject}
		live.Header[wire.HeaderSequence] = []string{strconv.FormatUint(at, 10)}
		live.Header[wire.HeaderLastSequence] = []string{strconv.FormatUint(previous, 10)}
		live.Header[wire.HeaderTimeStamp] = []string{stamp}
		live.Header[wire.HeaderStream] = []string{layout.StreamOf(m.Subject)}
		// A lost live record is noticed when the next one names it, or at the next check.
		_ = l.Conn.PublishMsg(live)
		at, previous = at+1, at
	}
}
