package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACallerHasOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := newTurns(atOnce)
		take := func(c Caller) (func(), error) { return ts.take(t.Context(), c) }
		evil, good, other := Caller{Tenant: "evil", Name: "a"}, Caller{Tenant: "good"}, Caller{Name: "other"}

		first, err := take(evil)
		require.NoError(t, err)
		began := time.Now()
		_, err = take(Caller{Tenant: "evil", Name: "b"})
		require.ErrorIs(t, err, errCallerBusy, "it is of the same tenant")
		require.Equal(t, turnPatience, time.Since(began))

		began = time.Now()
		second, err := take(good)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "another caller does not wait")
		_, err = take(other)
		require.ErrorIs(t, err, errAllBusy)

		gone, cancel := context.WithCancelCause(t.Context())
		left := errors.New("left")
		time.AfterFunc(time.Second, func() { cancel(left) })
		_, err = ts.take(gone, evil)
		require.ErrorIs(t, err, left)

		time.AfterFunc(time.Second, first)
		third, err := take(evil)
		require.NoError(t, err, "it waits until its first one has ended")
		third()
		second()
		require.Empty(t, ts.callers)
		require.Empty(t, ts.slots)
	})
}

func TestUnknownCallersShareAllTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := newTurns(atOnce)
		for range atOnce {
			_, err := ts.take(t.Context(), Caller{})
			require.NoError(t, err)
		}
		_, err := ts.take(t.Context(), Caller{})
		require.ErrorIs(t, err, errCallerBusy)
	})
}
