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

// rivalled is a log before each of whose appends somebody else makes one, unless
// that is kept back.
type rivalled struct {
	eventlog.Log
	first func()
}

func (l rivalled) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	go l.first()
	synctest.Wait()
	return l.Log.Append(ctx, session, expected, entries)
}

// A command passes a writer that always appends first, once, and the writer continues
// after it.
func TestACommandPassesAWriterThatIsAlwaysFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		var seen []string
		w := eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w", Observe: func(r eventlog.Record) { seen = append(seen, r.Type) }})
		defer w.Stop()
		require.NoError(t, w.Append(t.Context(), logtest.Text("s", "a")))
		wrote := make(chan error, 10)
		streams := eventlog.NewStreams(rivalled{log, func() { wrote <- w.Append(t.Context(), logtest.Text("s", "b")) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.NoError(t, streams.PauseStream(ctx, "s", "stop, please"))
		require.Zero(t, time.Since(began), "nobody has waited for a limit")
		require.NoError(t, <-wrote)
		require.NoError(t, <-wrote)
		require.Equal(t, []string{"text_delta", "text_delta", "stream_paused", "text_delta"}, seen)
	})
}

// A caller that contends and never finishes does not hold up others for long.
func TestAHoldEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		defer log.Close()
		head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
		require.NoError(t, err)
		for range 3 { // also where one hold follows another
			held, release := log.Hold(t.Context(), "s")
			time.Sleep(900 * time.Millisecond)
			_, again := log.Hold(t.Context(), "s")
			began := time.Now()
			head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "b")})
			require.NoError(t, err)
			require.Equal(t, time.Second, time.Since(began))
			head, err = log.Append(held, "s", head, []eventlog.Entry{logtest.Text("s", "c")})
			require.NoError(t, err)
			release()
			again()
			release()
		}
		_, release := log.Hold(t.Context(), "s")
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, err = log.Append(ctx, "s", head, []eventlog.Entry{logtest.Text("s", "d")})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		_, err = log.Append(t.Context(), "other", 0, []eventlog.Entry{logtest.Text("other", "a")})
		require.NoError(t, err, "others' sessions are not held")
	})
}
