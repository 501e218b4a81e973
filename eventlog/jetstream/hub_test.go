package jetstream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
)

// TestFollowersShareASubscription: however many follow a session, this node receives it
// once, and stops when the last one leaves.
func TestFollowersShareASubscription(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)

	head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "first")})
	require.NoError(t, err)
	before := nc.NumSubscriptions()
	const n = 200
	var attached, done sync.WaitGroup
	defer done.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	attached.Add(n)
	counts := make([]int, n)
	for i := range n {
		done.Go(func() {
			for r, err := range log.Follow(ctx, "s", 0) {
				if err != nil {
					t.Errorf("follower %d: %v", i, err)
					if counts[i] == 0 {
						attached.Done()
					}
					return
				}
				if counts[i]++; counts[i] == 1 {
					attached.Done()
				}
				if r.Type == "stream_resumed" {
					return
				}
			}
		})
	}
	attached.Wait()
	// A follower that has the first record may not have ended its read of the log.
	require.Eventually(t, func() bool { return nc.NumSubscriptions() == before+1 }, time.Minute, time.Millisecond)
	for range 50 {
		head, err = log.Append(ctx, "s", head, []eventlog.Entry{logtest.Text("s", "x")})
		require.NoError(t, err)
	}
	last := logtest.Fact("s", &fact.StreamResumed{Base: fact.Base{SessionID: "s"}})
	_, err = log.Append(ctx, "s", head, []eventlog.Entry{last})
	require.NoError(t, err)
	done.Wait()
	for i := range n {
		require.Equal(t, 52, counts[i])
	}
	require.Eventually(t, func() bool { return nc.NumSubscriptions() == before }, time.Minute, time.Millisecond)
}

// TestAGapIsReadFromTheLog: after a live message that does not follow its last record, a
// follower reads the log, whatever the message contains.
func TestAGapIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	nc, _ := serve(t, t.TempDir())
	log := jetstreamtest.Open(t, nc, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	head, err := log.Append(ctx, "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	var got []uint64
	for r, err := range log.Follow(ctx, "s", 0) {
		require.NoError(t, err)
		got = append(got, r.Sequence)
		switch len(got) {
		case 1: // a message from nowhere, and then a real record
			forged := nats.NewMsg(layout.LiveSubject("s"))
			forged.Header.Set("Helix-Kind", "chunk")
			forged.Header.Set("Nats-Sequence", "900")
			forged.Header.Set("Nats-Last-Sequence", "899")
			require.NoError(t, nc.PublishMsg(forged))
			require.NoError(t, nc.Publish(layout.LiveSubject("s"), []byte("no headers at all")))
			head, err = log.Append(ctx, "s", head, []eventlog.Entry{logtest.Text("s", "b")})
			require.NoError(t, err)
		case 2:
			head, err = log.Append(ctx, "s", head, []eventlog.Entry{logtest.Text("s", "c")})
			require.NoError(t, err)
		}
		if len(got) == 3 {
			break
		}
	}
	require.Equal(t, []uint64{1, 2, 3}, got)
}
