package maintenance

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/integration/testkit"
)

// tombstoneOnly appends a session's tombstone without a mark, as an older version did.
func tombstoneOnly(t *testing.T, l *Maintenance, session string) {
	t.Helper()
	head, err := l.Head(t.Context(), session)
	require.NoError(t, err)
	erased, err := eventlog.NewFact(session, &fact.Erased{Base: fact.Base{SessionID: session}}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = l.Append(t.Context(), session, head, []eventlog.Entry{erased})
	require.NoError(t, err)
}

// TestAStalledEraserLeavesTheNextSession: after an erasure is marked, a node that erases,
// or that finishes the erasure, stalls at each of its requests. Meanwhile the erasure
// ends and the session is created again, which must not be erased.
func TestAStalledEraserLeavesTheNextSession(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, erase := range map[string]func(context.Context, *Maintenance, string) error{
		"erases": func(ctx context.Context, l *Maintenance, session string) error {
			_, err := l.Erase(ctx, session)
			return err
		},
		"finishes": func(ctx context.Context, l *Maintenance, session string) error {
			_, err := l.finishErasure(ctx, session, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			entries := storetest.TextEntries("new", 3)
			var session string
			var at, steps int
			var marked bool
			stalled := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
				if marked {
					if steps++; steps == at+1 {
						ctx := context.WithoutCancel(ctx)
						if _, err := l.Erase(ctx, session); err != nil { // otherwise the stalled node has ended it
							require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
						}
						storetest.Appended(t, l, session, 0, entries)
					}
				}
				err := do(ctx)
				marked = marked || point == "mark"
				return err
			})
			for at = range testkit.Positions(5) {
				session, steps, marked = fmt.Sprint("s", at), 0, false
				head := storetest.Appended(t, l, session, 0, storetest.TextEntries("old", 3))
				if name == "finishes" {
					require.NoError(t, l.Want(t.Context(), session, head))
					marked = true
				}
				if err := erase(t.Context(), stalled, session); err != nil {
					require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
				}
				if steps <= at {
					break
				}
				storetest.RequireRecords(t, l, session, entries)
			}
			require.Greater(t, at, 9)
		})
	}
}

// TestASlowEraserKeepsTheNextMark: it marks its tombstone after the session was created
// again, and must be erased again.
func TestASlowEraserKeepsTheNextMark(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	tombstone := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3)) + 1
	_, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 3))
	require.NoError(t, l.Want(t.Context(), "s", head))
	_, err = l.Begin(t.Context(), "s", tombstone, nil)
	require.NoError(t, err)
	e, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, tombstone, e.Tombstone)
	require.Equal(t, head, e.Head)
	for range 2 {
		_, err = l.FinishErasures(t.Context(), true)
		require.NoError(t, err)
	}
	_, err = l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
