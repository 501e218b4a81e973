package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Of two nodes the first does each due job, and the other one when that has
// gone; one that takes longer than its interval is not done twice at once.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Bool
		var ran [2]atomic.Int64
		var busy atomic.Int64
		jobs := func(node int) []job {
			return []job{
				{name: "quick", every: time.Hour, run: func(context.Context) ([]slog.Attr, error) {
					ran[node].Add(1)
					return nil, errors.New("which is no end")
				}},
				{name: "slow", every: time.Hour, run: func(ctx context.Context) ([]slog.Attr, error) {
					if busy.Add(1) > 1 {
						t.Error("twice at once")
					}
					<-ctx.Done()
					busy.Add(-1)
					return nil, ctx.Err()
				}},
				{name: "never", run: func(context.Context) ([]slog.Attr, error) { panic("never") }},
			}
		}
		log := slog.New(slog.DiscardHandler)
		stopFirst := startSchedule(jobs(0), func() bool { return !gone.Load() }, log)
		stopSecond := startSchedule(jobs(1), gone.Load, log)
		time.Sleep(66 * time.Minute)
		require.Equal(t, []int64{1, 0}, []int64{ran[0].Load(), ran[1].Load()}, "once an hour, and at most a tenth later")
		time.Sleep(10 * time.Hour)
		require.GreaterOrEqual(t, ran[0].Load(), int64(10))
		require.Zero(t, ran[1].Load())
		gone.Store(true)
		stopFirst()
		before := ran[0].Load()
		time.Sleep(2*time.Hour + 12*time.Minute)
		require.Equal(t, before, ran[0].Load())
		require.GreaterOrEqual(t, ran[1].Load(), int64(1))
		stopSecond()
		require.Zero(t, busy.Load())
	})
}
