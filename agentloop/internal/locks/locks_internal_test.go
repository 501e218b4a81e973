package locks

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A lock is there for as long as somebody uses it, also who has outlived the run that began it.
func TestALockIsForgotten(t *testing.T) {
	ctx, h := t.Context(), new(Table)
	first, err := h.Share(ctx, "s")
	require.NoError(t, err)
	second, err := h.Share(ctx, "s")
	require.NoError(t, err)
	first()
	done, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("given up"))
	_, err = h.Lock(done, "s")
	require.EqualError(t, err, "given up")
	require.Len(t, h.all, 1)
	second()
	require.Empty(t, h.all)
}

func TestALockIsSharedOrHeldAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, h := t.Context(), new(Table)
		var unlock [maxShared]func()
		for i := range unlock {
			unlock[i], _ = h.Share(ctx, "s")
		}
		other, err := h.Lock(ctx, "other")
		require.NoError(t, err)
		other()
		var got []string
		wait := func(name string, hold func(context.Context, string) (func(), error)) {
			go func() {
				done, err := hold(ctx, "s")
				got = append(got, name)
				if err == nil {
					done()
				}
			}()
			synctest.Wait()
		}
		wait("alone", h.Lock)
		wait("shared", h.Share) // after the one that waits already
		for i, done := range unlock {
			require.Empty(t, got, i)
			done()
			synctest.Wait()
		}
		require.Equal(t, []string{"alone", "shared"}, got)
		require.Empty(t, h.all)
	})
}
