package snapshot_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/timeline"
	"github.com/helixd/helixd/snapshot"
)

// swapped is a log that can be replaced by another one.
type swapped struct{ eventlog.Log }

func timelineOf(t *testing.T, log eventlog.Log, session string) timeline.View {
	t.Helper()
	v := timeline.New()
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		v.Apply(r)
	}
	return v.Since(0)
}

// A client that follows a session pays for new records only.
func TestATimelineIsFoldedOn(t *testing.T) {
	t.Parallel()
	log := memory.New()
	counted := &counting{Log: log}
	states := snapshot.New(counted, nil)
	_, err := states.Timeline(t.Context(), "s", 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	fill(t, log, 500)
	for i := range 5 {
		counted.read = 0
		fill(t, log, 10)
		v, err := states.Timeline(t.Context(), "s", 0)
		require.NoError(t, err)
		require.Equal(t, timelineOf(t, log, "s"), v)
		require.Equal(t, []int{510, 11, 11, 11, 11}[i], counted.read)
		none, n, err := states.TimelineUpTo(t.Context(), "s", 0, 1)
		require.NoError(t, err)
		require.Empty(t, none, "it has more")
		require.Equal(t, len(v.Spans)+len(v.Marks)+len(v.Lanes), n)
		news, err := states.Timeline(t.Context(), "s", v.Head)
		require.NoError(t, err)
		require.Empty(t, news.Spans)
		_, err = states.Timeline(t.Context(), "s", v.Head+1)
		require.ErrorAs(t, err, new(*eventlog.CursorAheadError))
	}
}

// A log that has lost its end assigns its sequences again; an erased session's id may be
// another session's now. The old timeline is not shown.
func TestATimelineOfAnotherLogIsNotFoldedOn(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(t *testing.T) eventlog.Log{
		"shorter": func(t *testing.T) eventlog.Log {
			log := memory.New()
			fill(t, log, 5)
			return log
		},
		"other records": func(t *testing.T) eventlog.Log {
			log := memory.New()
			_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{userMessage(t, "mine")})
			require.NoError(t, err)
			fill(t, log, 30)
			return log
		},
		"gone": func(*testing.T) eventlog.Log { return memory.New() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &swapped{memory.New()}
			fill(t, log, 20)
			states := snapshot.New(log, nil)
			_, err := states.Timeline(t.Context(), "s", 0)
			require.NoError(t, err)
			log.Log = after(t)
			v, err := states.Timeline(t.Context(), "s", 0)
			if name == "gone" {
				require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
				return
			}
			require.NoError(t, err)
			require.Equal(t, timelineOf(t, log, "s"), v)
		})
	}
}

func TestAnErasedSessionHasNoTimeline(t *testing.T) {
	t.Parallel()
	log := memory.New()
	states := snapshot.New(log, nil)
	fill(t, log, 20)
	_, err := states.Timeline(t.Context(), "s", 0)
	require.NoError(t, err)
	_, err = states.Erase(t.Context(), "s")
	require.NoError(t, err)
	_, err = states.Timeline(t.Context(), "s", 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// Many callers request timelines of many sessions while one session is written.
func TestTimelinesForMany(t *testing.T) {
	t.Parallel()
	log := memory.New()
	const sessions = snapshot.MaxTimelines + 10
	for i := range sessions {
		_, err := log.Append(t.Context(), fmt.Sprint("s", i), 0, []eventlog.Entry{userMessage(t, "hi")})
		require.NoError(t, err)
	}
	states := snapshot.New(log, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range sessions {
				v, err := states.Timeline(t.Context(), fmt.Sprint("s", i), 0)
				if err != nil || len(v.Spans) != 1 {
					t.Error(i, v, err)
				}
			}
		})
		wg.Go(func() {
			last := uint64(0)
			for last < 300 {
				v, err := states.Timeline(t.Context(), "s", last)
				if err != nil && last > 0 || v.Head < last {
					t.Error(last, v.Head, err)
				}
				last = max(last, v.Head)
			}
		})
	}
	fill(t, log, 300)
	wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := states.Timeline(ctx, "s", 0)
	require.ErrorIs(t, err, context.Canceled)
}

func userMessage(t *testing.T, text string) eventlog.Entry {
	e, err := eventlog.NewFact("s", &fact.UserMessage{
		Content: text, Base: fact.Base{SessionID: "s", Timestamp: 1},
	}, eventlog.Labels{})
	require.NoError(t, err)
	return e
}
