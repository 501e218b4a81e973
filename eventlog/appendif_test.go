package eventlog_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
)

// An end that was decided before a new request must not end the requested run.
func TestWhatWasDecidedOnAStaleStateIsNotWritten(t *testing.T) {
	others := 0
	d := newDesk(t, eventlog.WriterOptions{Observe: func(r eventlog.Record) {
		if r.Writer != "w" {
			others++
		}
	}})
	still := func() bool { return others == 0 }
	require.NoError(t, d.AppendIf(t.Context(), still, logtest.Text("s", "nobody else;")))

	head, err := d.log.Head(t.Context(), "s")
	require.NoError(t, err)
	_, err = eventlog.AppendOnce(t.Context(), d.log, "s", "somebody", head, []eventlog.Entry{logtest.Text("s", "theirs;")})
	require.NoError(t, err)
	require.ErrorIs(t, d.AppendIf(t.Context(), still, logtest.Text("s", "the end")), eventlog.ErrStale)
	require.Equal(t, 1, others, "it has seen why")
	require.NoError(t, d.Append(t.Context(), logtest.Text("s", "ours;")))
	require.Equal(t, "nobody else;theirs;ours;", d.text())
}

func TestAConditionSeesAllThatPrecedesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := 0
		d := newDesk(t, eventlog.WriterOptions{NoMerge: true, Observe: func(r eventlog.Record) {
			if r.Type == "text_delta" {
				said++
			}
		}})
		d.stuck()
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "first;")))
		done := later(func() error {
			return d.AppendIf(t.Context(), func() bool { return said < 2 }, logtest.Text("s", "never"))
		})
		d.gate.Open()
		require.ErrorIs(t, <-done, eventlog.ErrStale)
		require.Equal(t, "in flight;first;", d.text())
	})
}
