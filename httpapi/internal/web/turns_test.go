package web

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
)

func TestACallerHasOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := NewTurns(AtOnce, false)
		take := func(c auth.Caller) (func(), error) { return ts.Take(t.Context(), c) }
		evil, good, other := auth.Caller{Tenant: "evil", Name: "a"}, auth.Caller{Tenant: "good"}, auth.Caller{Name: "other"}

		first, err := take(evil)
		require.NoError(t, err)
		began := time.Now()
		_, err = take(auth.Caller{Tenant: "evil", Name: "b"})
		require.ErrorIs(t, err, ErrCallerBusy, "it is of the same tenant")
		require.Equal(t, TurnPatience, time.Since(began))

		began = time.Now()
		second, err := take(good)
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "another caller does not wait")
		_, err = take(other)
		require.ErrorIs(t, err, ErrAllBusy)

		gone, cancel := context.WithCancelCause(t.Context())
		left := errors.New("left")
		time.AfterFunc(time.Second, func() { cancel(left) })
		_, err = ts.Take(gone, evil)
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
		ts := NewTurns(AtOnce, false)
		for range AtOnce {
			_, err := ts.Take(t.Context(), auth.Caller{})
			require.NoError(t, err)
		}
		_, err := ts.Take(t.Context(), auth.Caller{})
		require.ErrorIs(t, err, ErrCallerBusy)
	})
}

// A caller that makes one search or comparison after the other leaves half of the
// time to others. Its first one waits for nothing.
func TestACallerRestsAfterItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := NewTurns(AtOnce, true)
		turn := func(c auth.Caller, works time.Duration) (waited time.Duration) {
			began := time.Now()
			done, err := ts.Take(t.Context(), c)
			require.NoError(t, err)
			waited = time.Since(began)
			time.Sleep(works)
			done()
			return waited
		}
		evil, good := auth.Caller{Tenant: "evil"}, auth.Caller{Tenant: "good"}
		require.Zero(t, turn(evil, 300*time.Millisecond))
		require.Zero(t, turn(good, 0), "another caller does not wait")
		require.Equal(t, 300*time.Millisecond, turn(evil, time.Minute))
		require.Equal(t, maxRest, turn(evil, 0))
		time.Sleep(time.Millisecond)
		ts.mu.Lock()
		defer ts.mu.Unlock()
		require.Empty(t, ts.callers)
		require.Empty(t, ts.slots)
	})
}

func TestALargeBodyWithoutALengthIsParsedInATurn(t *testing.T) {
	g := &Gate{Parses: NewTurns(1, false), Bodies: NewBudget(1<<20, 1<<20)}
	r := &Request{Request: httptest.NewRequest("POST", "/", nil), Gate: g, Held: Holding{of: g.Bodies}}
	r.ContentLength = -1
	require.NoError(t, r.Held.Take(FirstRead+1))
	done, err := r.ParseTurn()
	require.NoError(t, err)
	require.Len(t, g.Parses.slots, 1)
	done()
	require.Empty(t, g.Parses.slots)
}
