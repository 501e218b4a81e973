package feed

import (
	"context"
	"strings"
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
	var told []eventlog.Change
	var failed error
	f := &feeder{log: New(log.Store), patience: time.Second, yield: func(f eventlog.Change, err error) bool {
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

// A server that was cut off and still takes itself for the leader ends before what was fed:
// the feed continues as soon as the leader answers, and its reader discards nothing.
func TestAFeedAsksTheLeaderAgain(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	var add func(n int)
	asked, open := 0, false
	hook := func(ctx context.Context, point string, do func(context.Context) error) error {
		err := do(ctx)
		if open && strings.HasPrefix(point, "$JS.API.STREAM.INFO") {
			switch asked++; asked {
			case 1: // the answer lacks the two records that were fed
				add(2)
			case 4: // the feed has caught up and looks whether it has missed one
				add(1)
			}
		}
		return err
	}
	log, err := maintenance.Open(link.WithTuning(t.Context(), link.Tuning{Hook: hook}), nc, link.Options{Durability: "interval=1s"})
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	head := uint64(0)
	add = func(n int) {
		was := open
		open = false
		for range n {
			head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{
				{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte("{}")},
			})
			require.NoError(t, err)
		}
		open = was
	}
	add(8)
	log.Opts.Replicas = 3 // so that an answer is not taken for the leader's
	open = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for fed, err := range New(log.Store).Feed(ctx, 0, 10) {
		require.NoError(t, err)
		require.EqualValues(t, 11, fed.Sequence)
		break
	}
}

// A message that a mark has passed is not yielded: positions rise.
func TestAFeedDoesNotGoBack(t *testing.T) {
	f := &feeder{at: 7, yield: func(eventlog.Change, error) bool { panic("it does") }}
	m := &feedMessage{}
	m.Sequence = 7
	more, err := f.hand(t.Context(), m)
	require.NoError(t, err)
	require.True(t, more)
}
