package logtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// feedOf returns the log's feed, or skips: it is a promise of some logs only.
func feedOf(t *testing.T, log eventlog.Log) eventlog.ChangeFeed {
	t.Helper()
	feed, ok := log.(eventlog.ChangeFeed)
	if !ok {
		t.Skip("the log has no feed")
	}
	return feed
}

// fedBetween returns what a feed has between two positions.
func fedBetween(t *testing.T, feed eventlog.ChangeFeed, from, to uint64) (all []eventlog.Change) {
	t.Helper()
	for f, err := range feed.Feed(ctxOf(t), 0, from) {
		require.NoError(t, err)
		require.Greater(t, f.Sequence, from, "positions rise")
		from = f.Sequence
		all = append(all, f)
		if f.Sequence >= to {
			return all
		}
	}
	return all
}

func feeds(t *testing.T, log eventlog.Log) {
	feed := feedOf(t, log)
	require.Equal(t, 1, log.Info().Partitions)
	name, err := feed.Identity(ctxOf(t))
	require.NoError(t, err)
	again, err := feed.Identity(ctxOf(t))
	require.NoError(t, err)
	require.NotEmpty(t, name)
	require.Equal(t, name, again)

	next, stop := iter.Pull2(feed.Feed(ctxOf(t), 0, 0))
	defer stop()
	heads, large := map[string]uint64{}, strings.Repeat("x", 1<<20)
	for i := range 3 * 200 {
		session := []string{"a", "b.*", "c"}[i%3]
		text := fmt.Sprint(i)
		if i == 100 {
			text = large
		}
		last := append1(t, log, session, heads[session], text)
		if i%50 != 0 && i < 590 {
			heads[session] = last
			continue
		}
		for { // it goes live in between
			f, err, _ := next()
			require.NoError(t, err)
			if f.Sequence == last {
				require.Equal(t, session, f.Session)
				require.Equal(t, []string{text}, texts(t, []eventlog.Record{f.Record}))
				break
			}
		}
		heads[session] = last
	}
	ends, err := feed.Spans(ctxOf(t))
	require.NoError(t, err)
	require.Equal(t, []eventlog.Span{{First: 1, Last: max(heads["a"], heads["b.*"], heads["c"])}}, ends)

	byName := map[string][]eventlog.Record{}
	previous := map[string]uint64{}
	for _, f := range fedBetween(t, feed, 0, ends[0].Last) {
		require.NoError(t, f.Err)
		require.True(t, f.Linked)
		require.Equal(t, previous[f.Session], f.Previous)
		previous[f.Session] = f.Sequence
		byName[f.Session] = append(byName[f.Session], f.Record)
	}
	require.Len(t, byName, 3)
	for session, records := range byName {
		read := collect(t, log.Read(ctxOf(t), session, 0, 0))
		require.Equal(t, entriesOf(read), entriesOf(records))
		for i := range read {
			require.Equal(t, read[i].Sequence, records[i].Sequence)
			require.WithinDuration(t, read[i].Time, records[i].Time, time.Minute) // about when it was stored
		}
	}
}

func feedPositions(t *testing.T, log eventlog.Log) {
	feed := feedOf(t, log)
	head := append1(t, log, "s", 0, numbered(0, 300)...)
	for _, from := range []uint64{0, 1, 150, head - 1} {
		got := fedBetween(t, feed, from, head)
		require.Len(t, got, int(head-from))
		require.Equal(t, from+1, got[0].Sequence)
	}
	var ahead *eventlog.CursorAheadError
	for _, err := range feed.Feed(ctxOf(t), 0, head+1) {
		require.ErrorAs(t, err, &ahead)
	}
	require.Equal(t, &eventlog.CursorAheadError{Cursor: head + 1, Head: head}, ahead)
}

func feedMarks(t *testing.T, log eventlog.Log) {
	feed := feedOf(t, log)
	kept := append1(t, log, "kept", 0, "a", "b")
	append1(t, log, "s", 0, numbered(0, 20)...)
	_, err := log.Erase(ctxOf(t), "s")
	require.NoError(t, err)
	ends, err := feed.Spans(ctxOf(t))
	require.NoError(t, err)
	require.Greater(t, ends[0].Last, kept)
	var got []eventlog.Change
	require.Eventually(t, func() bool { // a replica learns of the erasure a moment later
		got = fedBetween(t, feed, 0, ends[0].Last)
		return got[len(got)-1].Session == ""
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, []string{"kept", "kept"}, []string{got[0].Session, got[1].Session})
	require.Equal(t, ends[0].Last, got[len(got)-1].Sequence)

	last := append1(t, log, "kept", kept, "c")
	got = fedBetween(t, feed, 0, last)
	require.Equal(t, kept, got[len(got)-1].Previous)
}

func feedsEnd(t *testing.T, log eventlog.Log) {
	feed := feedOf(t, log)
	append1(t, log, "s", 0, "a")
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	defer cancel(nil)
	enough := errors.New("enough")
	var last error
	for _, err := range feed.Feed(ctx, 0, 0) {
		cancel(enough)
		last = err
	}
	require.ErrorIs(t, last, enough)
	for _, err := range feed.Feed(ctxOf(t), 0, 0) {
		if last = err; err == nil {
			require.NoError(t, log.Close())
		}
	}
	require.ErrorIs(t, last, eventlog.ErrClosed)
}
