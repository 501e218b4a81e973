package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/auth/authtest"
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

// Credentials that name nobody take no more than one turn, and names of different kinds are of
// different callers.
func TestCallersAreToldApart(t *testing.T) {
	key := authtest.NewEd25519(t)
	byJWT, err := auth.NewJWT(auth.JWTOptions{
		JWKS: authtest.KeySet(t, authtest.Public(key, "k", "EdDSA")), Now: func() time.Time { return authtest.Now },
	})
	require.NoError(t, err)
	signed := authtest.Signed(t, "EdDSA", key, "k", authtest.GoodClaims())
	for token, identify := range map[string]auth.Identifier{"unnamed": auth.TokenCallers([]auth.Token{{Token: "unnamed"}}), signed: byJWT.Identify} {
		c, err := identify(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}})
		require.NoError(t, err)
		synctest.Test(t, func(t *testing.T) {
			ts := NewTurns(AtOnce, false)
			_, err := ts.Take(t.Context(), c)
			require.NoError(t, err)
			_, err = ts.Take(t.Context(), c)
			require.ErrorIs(t, err, ErrCallerBusy)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ts := NewTurns(2, false)
		for _, c := range []auth.Caller{{Name: "ada"}, {Subject: "ada"}} {
			_, err := ts.Take(t.Context(), c)
			require.NoError(t, err)
		}
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

// atOnce counts what happens at a time.
type atOnce struct{ now, most atomic.Int64 }

func (n *atOnce) during(f func()) {
	now := n.now.Add(1)
	for most := n.most.Load(); now > most && !n.most.CompareAndSwap(most, now); most = n.most.Load() {
	}
	f()
	n.now.Add(-1)
}

// largeValue takes a millisecond to encode.
type largeValue struct{ encodes *atOnce }

func (v largeValue) MarshalJSON() (raw []byte, err error) {
	v.encodes.during(func() {
		time.Sleep(time.Millisecond)
		raw, err = json.Marshal(strings.Repeat("x", pieceBytes))
	})
	return raw, err
}

// slowReader takes a minute to take an answer.
type slowReader struct {
	http.ResponseWriter
	writes *atOnce
}

func (c slowReader) Write(p []byte) (int, error) {
	c.writes.during(func() { time.Sleep(time.Minute) })
	return len(p), nil
}

// A caller's large answers are encoded one at a time, so that each counts before the next one is
// there. Writing them takes no turn: a client may read slowly.
func TestACallersLargeAnswersAreEncodedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 8
		g := &Gate{WriteTimeout: time.Hour, Encodes: NewTurns(AtOnce, false), Answers: NewBudget(1<<20, 1<<20), Bodies: NewBudget(0, 0)}
		ctx := auth.WithCaller(t.Context(), auth.Caller{Tenant: "evil"})
		var encodes, writes atOnce
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				out := &Tracker{ResponseWriter: slowReader{httptest.NewRecorder(), &writes}, payer: "evil"}
				r := &Request{Request: httptest.NewRequestWithContext(ctx, "GET", "/", nil), Gate: g, Out: out, Held: Holding{of: g.Bodies}}
				defer r.End()
				if err := r.LargeAnswer(pieceBytes + 1); err != nil {
					t.Error(err)
					return
				}
				if err := r.OK(out, largeValue{&encodes}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, encodes.most.Load())
		require.EqualValues(t, requests, writes.most.Load())
		require.Zero(t, g.Answers.Held())
		require.Empty(t, g.Encodes.callers)
	})
}

// A turn ends with its request, whether or not there was an answer.
func TestATurnEndsWithItsRequest(t *testing.T) {
	g := &Gate{Encodes: NewTurns(AtOnce, false), Bodies: NewBudget(1<<20, 1<<20)}
	r := &Request{Request: httptest.NewRequest("GET", "/", nil), Gate: g, Out: new(Tracker), Held: Holding{of: g.Bodies}}
	require.NoError(t, r.LargeAnswer(pieceBytes))
	require.Empty(t, g.Encodes.slots, "a small one needs none")
	require.NoError(t, r.LargeAnswer(pieceBytes+1))
	require.Len(t, g.Encodes.slots, 1)
	r.End()
	require.Empty(t, g.Encodes.slots)
}
