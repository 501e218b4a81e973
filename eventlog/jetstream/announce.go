package jetstream

import (
	"context"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// announceLate announces an append that is stored, when it is on the disk: its caller has
// left before.
func (l *store) announceLate(a *pendingAppend, last uint64) {
	if !l.groupSync() {
		return
	}
	l.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaderPatience)
		defer cancel()
		if l.await(ctx, layout.StreamOf(a.messages[0].Subject), last) == nil {
			l.announce(a, last)
		}
	})
}

// announce hands an append to this node's followers of the session, and publishes it if
// somebody else listens. A server without GroupSync has republished it already.
func (l *store) announce(a *pendingAppend, last uint64) {
	if !l.groupSync() {
		return
	}
	now := time.Now()
	own := 0
	if l.deliver != nil {
		own = l.deliver(a, last, now)
	}
	if l.opts.Server.Interest(layout.LiveSubject(a.session)) <= own {
		return
	}
	at, previous := last+1-uint64(len(a.messages)), a.expected
	stamp := now.UTC().Format(time.RFC3339Nano)
	for i, m := range a.messages {
		live := wire.NewMessage(m.Subject, a.records[i], false)
		live.Subject = layout.LiveSubject(a.session)
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
		// A live record that is lost shows when the next one names it, or at the next check.
		_ = l.nc.PublishMsg(live)
		at, previous = at+1, at
	}
}
