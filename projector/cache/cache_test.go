package cache

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

func TestACacheIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New[string, int](3, 100, time.Minute)
		put := func(session string, value, size int) (was int) {
			require.NoError(t, s.Use(t.Context(), session, func(v *int) (int, error) {
				was, *v = *v, value
				return size, nil
			}))
			return was
		}
		kept := func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Sorted(maps.Keys(s.entries))
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
		require.ErrorIs(t, s.Use(t.Context(), "nothing", func(*int) (int, error) { return 0, problem }), problem)
		require.NotContains(t, kept(), "nothing", "what came to nothing is not kept")

		s.Drop("small")
		require.Zero(t, s.size)
		require.Empty(t, kept())
		for _, key := range []string{"a1", "b1", "b2"} {
			put(key, 1, 10)
		}
		s.DropIf(func(key string) bool { return key[0] == 'b' })
		require.Equal(t, []string{"a1"}, kept())
		require.Equal(t, 10, s.size)
		s.Drop("a1")

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

// endsMeanwhile is a context that ends after Use has looked at it.
type endsMeanwhile struct{ context.Context }

func (endsMeanwhile) Err() error { return nil }

// A caller whose context has ended leaves no entry.
func TestAnEndedContextLeavesNoEntry(t *testing.T) {
	t.Parallel()
	s := New[string, int](1_000, 100, time.Minute)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 {
		key := fmt.Sprint(i)
		require.ErrorIs(t, s.Use(ended, key, func(*int) (int, error) { return 1, nil }), context.Canceled)
		require.False(t, s.Holds(key))

		_ = s.Use(endsMeanwhile{ended}, key, func(*int) (int, error) { return 0, context.Canceled })
		require.False(t, s.Holds(key), "it ends meanwhile")
	}
	require.Empty(t, s.entries)
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Who waits for its turn leaves when it is cancelled, and a value that was
// dropped meanwhile is not counted.
func TestACacheGivesOneTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New[string, int](3, 100, time.Minute)
		in, out := make(chan struct{}), make(chan struct{})
		go func() {
			_ = s.Use(t.Context(), "a", func(v *int) (int, error) {
				close(in)
				<-out
				return 50, nil
			})
		}()
		<-in
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Use(ctx, "a", func(*int) (int, error) { return 1, nil }), context.Canceled)
		s.Drop("a")
		out <- struct{}{}
		synctest.Wait()
		require.Zero(t, s.size)
		require.Empty(t, s.entries)
		s.mu.Lock()
		s.timer.Stop()
		s.mu.Unlock()
	})
}
