package store

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/internal/hold"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// HoldSubjects with a session's token is the subject on which a node asks all nodes to
// hold back appends to the session, and on which it releases them. It is a courtesy: a
// lost message costs time, never correctness.
const HoldSubjects = "helix.node.hold."

// The first word of such a message, before the holder's id.
const (
	holdBegins = "begin "
	holdEnds   = "end "
)

// WatchHolds makes l obey other nodes' holds.
func (l *Store) WatchHolds() error {
	l.node = rand.Text()
	sub, err := l.Conn.Subscribe(HoldSubjects+"*", func(m *nats.Msg) {
		session, ok := layout.SessionID(m.Subject[len(HoldSubjects):])
		verb, holder, more := strings.Cut(string(m.Data), " ")
		if !ok || !more || strings.HasPrefix(holder, l.node) {
			return
		}
		switch verb + " " {
		case holdBegins:
			l.Holds.Begin(session, holder)
		case holdEnds:
			l.Holds.End(session, holder)
		}
	})
	if err != nil {
		return err
	}
	l.Spawn(func() {
		<-l.Closed
		_ = sub.Unsubscribe() // fails only on a closed connection
		l.Holds.Close()
	})
	return nil
}

// Hold implements eventlog.Log.
func (l *Store) Hold(ctx context.Context, session string) (held context.Context, release func()) {
	if l.Opts.Hook != nil { // the hook reports the waiting append
		return ctx, func() {}
	}
	holder := l.node + "." + strconv.FormatUint(l.held.Add(1), 10)
	say := func(what string) { _ = l.Conn.Publish(HoldSubjects+layout.Token(session), []byte(what+holder)) }
	l.Holds.Begin(session, holder)
	say(holdBegins)
	return hold.Holder(ctx, session), func() {
		l.Holds.End(session, holder)
		say(holdEnds)
	}
}
