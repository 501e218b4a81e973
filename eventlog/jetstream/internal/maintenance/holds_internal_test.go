package maintenance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

// rivalled is a log before each of whose appends another node appends, unless that one is
// held back.
type rivalled struct {
	*wholeLog
	tries *int
	first func(held bool)
}

func (l rivalled) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	*l.tries++
	l.first(*l.tries > 1)
	return l.Maintenance.Append(ctx, session, expected, entries)
}

// A command through one node passes the writer of another node, which always appends
// first: that node is asked to wait. The writer continues after it, and nothing is stored
// twice.
func TestACommandPassesAWriterOfAnotherNode(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	other := secondNode(t, l)
	w := eventlog.NewWriter(whole(other), "s", eventlog.WriterOptions{ID: "w"})
	defer w.Stop()
	require.NoError(t, w.Append(t.Context(), storetest.TextEntries("a", 1)...))
	wrote, tries := make(chan error, 2), 0
	streams := eventlog.NewStreams(rivalled{whole(l), &tries, func(held bool) {
		if held {
			require.Eventually(t, func() bool { return other.Holds.Held("s") }, time.Minute, time.Millisecond)
		}
		go func() { wrote <- w.Append(t.Context(), storetest.TextEntries("b", 1)...) }()
		if !held {
			require.NoError(t, <-wrote)
		}
	}})
	require.NoError(t, streams.PauseStream(t.Context(), "s", "stop, please"))
	require.Equal(t, 2, tries)
	require.NoError(t, <-wrote)
	var types []string
	for r, err := range l.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		types = append(types, r.Type)
	}
	require.Equal(t, []string{"text_delta", "text_delta", "stream_paused", "text_delta"}, types)
	require.Eventually(t, func() bool { return !other.Holds.Held("s") }, time.Minute, time.Millisecond)
}

// A command creates no session, and restores none that was erased.
func TestACommandDoesNotReviveASession(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	streams := eventlog.NewStreams(whole(l))
	require.ErrorIs(t, streams.PauseStream(t.Context(), "s", ""), eventlog.ErrSessionNotFound)
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("a", 1))
	other := secondNode(t, l)
	tries := 0
	streams = eventlog.NewStreams(rivalled{whole(l), &tries, func(bool) {
		if tries == 1 {
			_, err := other.Erase(t.Context(), "s")
			require.NoError(t, err)
		}
	}})
	require.ErrorIs(t, streams.PauseStream(t.Context(), "s", ""), eventlog.ErrSessionNotFound)
	_, err := l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
