package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
)

func TestInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Background(3)
		var now, tooMany, done atomic.Int64
		job := func(context.Context) {
			if now.Add(1) > 3 {
				tooMany.Add(1)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			done.Add(1)
		}
		for range 10 {
			e.Execute(t.Context(), job)
		}
		synctest.Wait()
		require.EqualValues(t, 3, now.Load())
		began := time.Now()
		require.NoError(t, e.Shutdown(t.Context()))
		require.EqualValues(t, 10, done.Load(), "what was taken is done")
		require.Zero(t, tooMany.Load())
		require.Equal(t, 4*time.Second, time.Since(began))
		e.Execute(t.Context(), job)
		synctest.Wait()
		require.EqualValues(t, 0, now.Load(), "nothing is taken any more")
		require.NoError(t, e.Shutdown(t.Context()), "it can be called again")
	})
}

func TestAFullQueueDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Background(0)
		var done atomic.Int64
		for range memory.DefaultConcurrency + memory.MaxQueued + 5 {
			e.Execute(t.Context(), func(context.Context) {
				time.Sleep(time.Second)
				done.Add(1)
			})
		}
		require.NoError(t, e.Shutdown(t.Context()))
		require.EqualValues(t, memory.DefaultConcurrency+memory.MaxQueued, done.Load())
	})
}

func TestAShutdownThatCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory.Background(1)
		var ended, begun atomic.Int64
		for range 3 {
			e.Execute(t.Context(), func(ctx context.Context) {
				begun.Add(1)
				<-ctx.Done()
				ended.Add(1)
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, e.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		require.EqualValues(t, 1, begun.Load(), "what waits is dropped")
		require.EqualValues(t, 1, ended.Load(), "what is under way has ended")
	})
}

func TestInline(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 1)
	done := false
	memory.Inline().Execute(ctx, func(ctx context.Context) { done = ctx.Value(key{}) == 1 })
	require.True(t, done)
	require.NoError(t, memory.Inline().Shutdown(ctx))
}
