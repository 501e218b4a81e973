package eventlog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
)

// A writer that lets somebody pass goes on behind what they wrote: when it is
// told to, when they took too long, and it ends though they are still at it.
func TestAWriterThatYieldsGoesOnBehind(t *testing.T) {
	for name, end := range map[string]func(w *eventlog.Writer, release func()){
		"released":      func(_ *eventlog.Writer, release func()) { release() },
		"after a while": func(*eventlog.Writer, func()) {},
		"stopped":       func(w *eventlog.Writer, _ func()) { w.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := memory.New()
				var seen []uint64
				w := eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w", Observe: func(r eventlog.Record) { seen = append(seen, r.Sequence) }})
				defer w.Stop()
				require.NoError(t, w.Append(t.Context(), logtest.Text("s", "a")))
				head, err := log.Head(t.Context(), "s")
				require.NoError(t, err)
				began := time.Now()
				release, err := w.Yield(t.Context(), time.Second)
				require.NoError(t, err)
				written := make(chan error, 1)
				go func() { written <- w.Append(t.Context(), logtest.Text("s", "c")) }()
				synctest.Wait()
				between, err := eventlog.AppendOnce(t.Context(), log, "s", "other", head, []eventlog.Entry{logtest.Text("s", "b")})
				require.NoError(t, err, "the writer has sent nothing")
				end(w, release)
				err = <-written
				release()
				if name == "stopped" {
					require.ErrorIs(t, err, eventlog.ErrWriterBroken)
					_, err = w.Yield(t.Context(), time.Second)
					require.ErrorIs(t, err, eventlog.ErrWriterBroken)
					return
				}
				require.NoError(t, err)
				require.Len(t, seen, 3)
				require.Equal(t, between, seen[1])
				require.Equal(t, name == "after a while", time.Since(began) == time.Second)
			})
		})
	}
}

// Whoever waits for a writer's append to end may give up.
func TestYieldEndsWithItsContext(t *testing.T) {
	w := eventlog.NewWriter(memory.New(), "s", eventlog.WriterOptions{ID: "w"})
	defer w.Stop()
	release, err := w.Yield(t.Context(), time.Minute)
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Yield(ctx, time.Minute)
	require.ErrorIs(t, err, context.Canceled)
}
