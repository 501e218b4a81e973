package logtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// timeless leaves the storage time out of records, since sealing may change it meanwhile.
func timeless(records []eventlog.Record) []eventlog.Record {
	for i := range records {
		records[i].Time = time.Time{}
	}
	return records
}

// copying: a log that can be copied gives what it held at its ends, and nothing
// that came later.
func copying(t *testing.T, log eventlog.Log) {
	c, ok := log.(eventlog.Copier)
	if !ok {
		t.Skip("the log is no Copier")
	}
	ctx := ctxOf(t)
	ends, err := c.Ends(ctx)
	require.NoError(t, err)
	require.Len(t, ends, log.Info().Partitions)
	require.Equal(t, make([]uint64, len(ends)), ends)
	one := append1(t, log, "one", 0, "a", "b")
	append1(t, log, "two", 0, numbered(0, 300)...)
	append1(t, log, "erased", 0, "x")
	ends, err = c.Ends(ctx)
	require.NoError(t, err)
	want := map[string][]eventlog.Record{
		"one": timeless(collect(t, log.Read(ctx, "one", 0, 0))), "two": timeless(collect(t, log.Read(ctx, "two", 0, 0))), "later": nil,
	}
	append1(t, log, "one", one, "c")
	append1(t, log, "later", 0, "d")
	_, err = log.Erase(ctx, "erased")
	require.NoError(t, err)

	copied := func(session string) (got []eventlog.Record) {
		floor, records, err := c.Copy(ctx, session, ends[c.PartitionOf(session)])
		require.NoError(t, err)
		require.Zero(t, floor)
		for r, err := range records {
			require.NoError(t, err)
			require.False(t, r.Unlinked)
			got = append(got, r.Record)
		}
		return got
	}
	for session, records := range want {
		require.Equal(t, records, timeless(copied(session)), session)
	}
	_, records, err := c.Copy(ctx, "later", 0) // its partition was empty
	require.NoError(t, err)
	for r, err := range records {
		require.NoError(t, err)
		require.Fail(t, "a record that came later is copied", "%+v", r)
	}
	_, _, err = c.Copy(ctx, "erased", 1<<60)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	ended, cancel := context.WithCancel(ctx)
	_, records, err = c.Copy(ended, "two", 1<<60)
	require.NoError(t, err)
	cancel()
	n := 0
	for _, err = range records {
		n++
	}
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, n)
}
