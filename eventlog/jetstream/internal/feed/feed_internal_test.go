package feed

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// A feed that makes no progress ends with the reason.
func TestAFeedGivesUp(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log, err := maintenance.Open(t.Context(), nc, link.Options{Durability: "interval=1s"})
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{
		{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte("{}")},
	})
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var told []eventlog.Fed
	var failed error
	f := &feeder{log: New(log.Store), patience: time.Second, yield: func(f eventlog.Fed, err error) bool {
		if err != nil {
			failed = err
			return false
		}
		told = append(told, f)
		require.NoError(t, log.JS.DeleteStream(ctx, layout.LogStream(0))) // for good
		return true
	}}
	f.feed(ctx)
	require.Len(t, told, 1)
	require.Error(t, failed)
	require.NoError(t, ctx.Err(), "it ended by itself: %v", failed)
}

// A message that a mark has passed is not yielded: positions rise.
func TestAFeedDoesNotGoBack(t *testing.T) {
	f := &feeder{at: 7, yield: func(eventlog.Fed, error) bool { panic("it does") }}
	m := &feedMessage{}
	m.Sequence = 7
	more, err := f.hand(t.Context(), m)
	require.NoError(t, err)
	require.True(t, more)
}
