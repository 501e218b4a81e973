package jetstream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

func filesHolding(t *testing.T, dir, text string) []string {
	t.Helper()
	files, err := testkit.Scan(t.Context(), dir, text)
	require.NoError(t, err)
	return files
}

func TestErasureLeavesNoByteInAnyFile(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	const secret, kept = "a-secret-nobody-may-find", "what-others-wrote"
	dir := t.TempDir()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second})
	require.NoError(t, err)
	nc, err := srv.Connect()
	require.NoError(t, err)
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	write := func(session, text string) (head uint64) {
		for i := range 3 {
			var entries []eventlog.Entry
			for k := range 100 {
				entries = append(entries, logtest.Text(session, fmt.Sprint(text, " ", i, " ", k)))
			}
			entries = append(entries, logtest.Text(session, fmt.Sprint(i)+strings.Repeat(text, 20<<10))) // a blob
			last, err := log.Append(t.Context(), session, head, entries)
			require.NoError(t, err)
			head = last
		}
		require.NoError(t, log.Seal(t.Context(), session))
		return head
	}
	head := write("a", secret)
	write("b", kept)
	require.NotEmpty(t, filesHolding(t, dir, secret), "the search finds what is there")

	e, err := log.Erase(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, eventlog.Erasure{Records: 303}, e)
	_, err = log.Head(t.Context(), "a")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	for _, err = range log.Read(t.Context(), "a", 0, 0) {
	}
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = log.Erase(t.Context(), "a")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	// A writer that does not know of it.
	_, err = log.Append(t.Context(), "a", head, []eventlog.Entry{logtest.Text("a", strings.Repeat(secret, 20<<10))})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)

	require.NoError(t, log.Close())
	nc.Close()
	srv.Stop()
	require.Empty(t, filesHolding(t, dir, secret))
	require.NotEmpty(t, filesHolding(t, dir, kept))

	_, nc = embedtest.Start(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
	log, err = jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	defer log.Close()
	require.Len(t, recordsOf(t, log, "b", 0, 0), 303)
	last, err := log.Append(t.Context(), "a", 0, []eventlog.Entry{logtest.Text("a", "a new session of that name")})
	require.NoError(t, err)
	require.Greater(t, last, head, "sequences are not used again")
}

// TestAnInterruptedErasureContinues: from its first moment the session is gone for
// everyone, and erasing again finishes the work.
func TestAnInterruptedErasureContinues(t *testing.T) {
	t.Parallel()
	log := open(t, time.Second).(*jetstream.Log)
	head, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a"), logtest.Text("s", "b")})
	require.NoError(t, err)
	tombstone, err := eventlog.NewFact("s", &fact.Erased{Base: fact.Base{SessionID: "s"}}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), "s", head, []eventlog.Entry{tombstone})
	require.NoError(t, err)

	_, err = log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = eventlog.AppendOnce(ctx, log, "s", "w", head, []eventlog.Entry{logtest.Text("s", "c")})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	e, err := log.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, 2, e.Records)
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "new")})
	require.NoError(t, err)
}
