package jetstream_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// patience is more than the time after which a server removes an unused consumer.
const patience = 2 * time.Minute

// A feed has one consumer on the server. It survives the consumer's loss without leaving
// out or repeating a record, and leaves no consumer.
func TestAFeedOutlivesItsConsumer(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: "interval=1s"})
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	consumers := func() (names []string) {
		for name := range stream.ConsumerNames(t.Context()).Name() {
			names = append(names, name)
		}
		return names
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	next, stop := iter.Pull2(log.Feed(ctx, 0, 0))
	head, at := uint64(0), uint64(0)
	for range 5 {
		for i := range 100 {
			head, err = log.Append(ctx, "s", head, []eventlog.Entry{logtest.Text("s", fmt.Sprint(i))})
			require.NoError(t, err)
		}
		for at < head {
			f, err, _ := next()
			require.NoError(t, err)
			require.Equal(t, at+1, f.Sequence)
			at = f.Sequence
		}
		// The server removes a consumer later if it could not be removed at once.
		require.Eventually(t, func() bool { return len(consumers()) == 1 }, patience, 10*time.Millisecond)
		require.NoError(t, stream.DeleteConsumer(ctx, consumers()[0]))
	}
	stop()
	require.Eventually(t, func() bool { return len(consumers()) == 0 }, patience, 100*time.Millisecond)
}

// Purged records are not fed: the spans say so beforehand.
func TestAFeedBeginsAfterAPurge(t *testing.T) {
	t.Parallel()
	log := open(t, time.Second).(*jetstream.Log)
	entries := make([]eventlog.Entry, 100)
	for i := range entries {
		entries[i] = logtest.Text("s", fmt.Sprint(i))
	}
	head, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	ends, err := log.Spans(t.Context())
	require.NoError(t, err)
	require.Equal(t, []eventlog.Span{{First: head + 1, Last: head}}, ends)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for f, err := range log.Feed(ctx, 0, 0) {
		require.NoError(t, err)
		require.Equal(t, head, f.Sequence)
		require.Empty(t, f.Session)
		break
	}
}
