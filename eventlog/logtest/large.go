package logtest

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// largePayloads: a record of the largest size comes back byte for byte, to
// readers and to followers, between small ones; a larger one changes nothing.
func largePayloads(t *testing.T, log eventlog.Log) {
	ctx, cancel := context.WithCancel(ctxOf(t))
	defer cancel()
	head := append1(t, log, "s", 0, "before")
	limit := log.Info().MaxRecordBytes
	require.Equal(t, eventlog.MaxPayload, limit)
	var entries []eventlog.Entry
	for _, size := range []int{limit, 300 << 10, 1} {
		e := Text("s", "")
		e.Payload = []byte(strings.Repeat("0123456789abcdef", size/16+1)[:size])
		entries = append(entries, e)
	}
	entries[0].Payload[limit-1] = 0 // any bytes at all

	received := make(chan eventlog.Record)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		for r, err := range log.Follow(ctx, "s", head) {
			if err != nil {
				return
			}
			select {
			case received <- r:
			case <-ctx.Done():
			}
		}
	}()
	defer func() { cancel(); <-followed }()

	last, err := put(ctx, log, "s", head, entries)
	require.NoError(t, err)
	last = append1(t, log, "s", last, "after")
	records := collect(t, log.Read(ctx, "s", 0, 0))
	require.Len(t, records, 5)
	for i, e := range entries {
		require.True(t, bytes.Equal(e.Payload, records[i+1].Payload), "record %d", i)
		r := <-received
		require.Equal(t, records[i+1].Sequence, r.Sequence)
		require.True(t, bytes.Equal(e.Payload, r.Payload), "followed record %d", i)
	}

	_, err = log.Append(ctx, "s", last, []eventlog.Entry{Text("s", "x"), {Envelope: entries[0].Envelope, Payload: make([]byte, limit+1)}})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	now, err := log.Head(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, last, now)
}

// erasure: an erased session is gone for readers, followers and writers, and
// its id can be used again after its sequences.
func erasure(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	head := append1(t, log, "s", 0, "a", "b", "c")
	append1(t, log, "other", 0, "a")
	next, stop := iter.Pull2(log.Follow(ctx, "s", 0))
	defer stop()
	for range 3 {
		_, err, _ := next()
		require.NoError(t, err)
	}
	w := eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w", Head: head})

	e, err := log.Erase(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, 3, e.Records)
	_, err = log.Erase(ctx, "never")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = log.Head(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = collectErr(log.Read(ctx, "s", 0, 0))
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err, _ = next()
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.ErrorIs(t, w.Append(ctx, Text("s", "too late")), eventlog.ErrSessionNotFound)
	_, err = eventlog.AppendOnce(ctx, log, "s", "p", head, []eventlog.Entry{Text("s", "too late")})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	require.Greater(t, append1(t, log, "s", 0, "a new one"), head)
	require.Equal(t, []string{"a new one"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
	require.Equal(t, []string{"a"}, texts(t, collect(t, log.Read(ctx, "other", 0, 0))))
}
