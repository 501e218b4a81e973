package durable

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// countedLog counts the requests to a log.
type countedLog struct {
	eventlog.Log
	requests, appends atomic.Int64
}

func (l *countedLog) Head(ctx context.Context, session string) (uint64, error) {
	l.requests.Add(1)
	return l.Log.Head(ctx, session)
}

func (l *countedLog) Read(ctx context.Context, session string, after, upTo uint64) iter.Seq2[eventlog.Record, error] {
	l.requests.Add(1)
	return l.Log.Read(ctx, session, after, upTo)
}

func (l *countedLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	l.requests.Add(1)
	l.appends.Add(1)
	return l.Log.Append(ctx, session, expected, entries)
}

// The readers that follow a stream have its state as it was when they came. Once in each interval
// one of them renews its TTL, and the others ask the log for nothing.
func TestReadersThatFollowRenewOnce(t *testing.T) {
	log := &countedLog{Log: memory.New()}
	s, now := New(log, snapshot.New(log, nil), nil), time.Now()
	s.now = func() time.Time { return now }
	id, ttl := eventlog.DurableLogID("s"), int64(8)
	_, _, err := s.Create(t.Context(), id, Owner{}, Create{TTL: &ttl})
	require.NoError(t, err)
	v, err := s.Open(t.Context(), id)
	require.NoError(t, err)
	log.appends.Store(0)
	for tick := range 5 {
		now = now.Add(2 * time.Second)
		require.NoError(t, s.Use(t.Context(), id, v.State))
		log.requests.Store(0)
		for range 100 {
			require.NoError(t, s.Use(t.Context(), id, v.State))
		}
		require.Zero(t, log.requests.Load())
		require.EqualValues(t, tick+1, log.appends.Load())
	}
	now = now.Add(2 * time.Second)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := s.Use(t.Context(), id, v.State); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 6, log.appends.Load())
	_, err = s.Open(t.Context(), id)
	require.NoError(t, err, "it has lived for longer than its TTL")
}
