package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAShelfIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[int](3, 100, time.Minute)
		put := func(session string, value, size int) (was int) {
			require.NoError(t, s.use(t.Context(), session, func(v *int) (int, error) {
				was, *v = *v, value
				return size, nil
			}))
			return was
		}
		kept := func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Sorted(maps.Keys(s.slots))
		}
		for i := range 5 {
			put(fmt.Sprint(i), i+1, 10)
		}
		require.Equal(t, []string{"2", "3", "4"}, kept())
		require.Equal(t, 30, s.size)
		require.Equal(t, 5, put("4", 5, 10), "what was used last is there")
		require.Zero(t, put("0", 1, 10), "what was not has gone")

		put("large", 7, 1_000)
		require.Equal(t, []string{"large"}, kept(), "what is asked for now is kept whatever its size")
		require.Equal(t, 7, put("large", 7, 1_000))
		put("small", 8, 1)
		require.Equal(t, 1, s.size)

		problem := errors.New("x")
		require.ErrorIs(t, s.use(t.Context(), "nothing", func(*int) (int, error) { return 0, problem }), problem)
		require.NotContains(t, kept(), "nothing", "what came to nothing is not kept")

		s.drop("small")
		require.Zero(t, s.size)
		require.Empty(t, kept())

		put("a", 1, 10)
		time.Sleep(40 * time.Second)
		put("b", 1, 10)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"b"}, kept(), "what nobody asks for goes")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, kept())
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Nil(t, s.timer)
	})
}

// Who waits for its turn leaves when it is cancelled, and a value that was
// forgotten meanwhile is not counted.
func TestAShelfGivesOneTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[int](3, 100, time.Minute)
		in, out := make(chan struct{}), make(chan struct{})
		go func() {
			_ = s.use(t.Context(), "a", func(v *int) (int, error) {
				close(in)
				<-out
				return 50, nil
			})
		}()
		<-in
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.use(ctx, "a", func(*int) (int, error) { return 1, nil }), context.Canceled)
		s.drop("a")
		out <- struct{}{}
		synctest.Wait()
		require.Zero(t, s.size)
		require.Empty(t, s.slots)
		s.mu.Lock()
		s.timer.Stop()
		s.mu.Unlock()
	})
}
