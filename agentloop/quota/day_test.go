package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

func of(tokens int64) fact.TokenUsage {
	return fact.TokenUsage{Prompt: tokens / 2, Completion: tokens - tokens/2}
}

// daily are limits of the tenant red.
func daily(l quota.Limits, days quota.Days) *quota.Quota {
	return quota.New(quota.Tenants{
		Named:  map[string]quota.Limits{"red": l},
		Prices: map[string]readmodel.Price{"m": {Input: 1e6, Output: 3e6}},
	}, nil, days)
}

func spent(t *testing.T, q *quota.Quota) (spent, reserved quota.Spent) {
	t.Helper()
	spent, reserved, err := q.Spent(t.Context(), "red")
	require.NoError(t, err)
	return spent, reserved
}

func exceeded(t *testing.T, err error) quota.Exceeded {
	t.Helper()
	e, is := errors.AsType[*quota.Exceeded](err)
	require.True(t, is, "%v", err)
	return *e
}

func TestACallIsReservedAndSettledOnce(t *testing.T) {
	q := daily(quota.Limits{TokensPerDay: 1000}, new(quota.Memory))
	var r *quota.Reservation
	for range 2 { // the first answer was lost
		var err error
		r, err = q.Reserve(t.Context(), "red", "s", "call", "m", of(300))
		require.NoError(t, err)
		s, reserved := spent(t, q)
		require.Zero(t, s)
		require.Equal(t, quota.Spent{Tokens: 300, USD: 600}, reserved)
	}
	for range 2 {
		require.NoError(t, r.Settle(t.Context(), "m-2026-01-01", of(100)))
		s, reserved := spent(t, q)
		require.Equal(t, quota.Spent{Tokens: 100, USD: 200}, s, "by the price of the model that was asked for")
		require.Zero(t, reserved)
	}
}

// The process of a call has died: its next call finds the reservation, or it gets too
// old.
func TestAReservationThatNobodySettlesIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := daily(quota.Limits{TokensPerDay: 1000}, new(quota.Memory))
		lost, err := q.Reserve(t.Context(), "red", "s", "1", "m", of(300))
		require.NoError(t, err)
		_, err = q.Reserve(t.Context(), "red", "s", "2", "m", of(200))
		require.NoError(t, err)
		s, reserved := spent(t, q)
		require.Equal(t, int64(300), s.Tokens)
		require.Equal(t, int64(200), reserved.Tokens)
		require.NoError(t, lost.Settle(t.Context(), "m", of(10)))
		s, _ = spent(t, q)
		require.Equal(t, int64(300), s.Tokens, "it counts already")

		time.Sleep(time.Hour + time.Second)
		r, err := q.Reserve(t.Context(), "red", "other", "3", "m", of(100))
		require.NoError(t, err)
		require.NoError(t, r.Settle(t.Context(), "m", of(1)))
		s, reserved = spent(t, q)
		require.Equal(t, int64(501), s.Tokens)
		require.Zero(t, reserved)
	})
}

// unanswered are days that save a value and then fail, that many times.
type unanswered struct {
	quota.Days
	left int
}

var errUnanswered = errors.New("no answer")

func (u *unanswered) Save(ctx context.Context, key string, value []byte, revision uint64) (bool, error) {
	saved, err := u.Days.Save(ctx, key, value, revision)
	if u.left--; u.left >= 0 {
		return false, errUnanswered
	}
	return saved, err
}

// A call whose reservation fails is not made, and costs nothing when the session tries again: the
// reservation is then as old, and as large, as that of the call that is made.
func TestAFailedReservationIsNotSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := daily(quota.Limits{TokensPerDay: 1000}, &unanswered{new(quota.Memory), 1})
		_, err := q.Reserve(t.Context(), "red", "s", "1", "m", of(300))
		require.ErrorIs(t, err, errUnanswered)
		time.Sleep(59 * time.Minute)
		_, err = q.Reserve(t.Context(), "red", "s", "2", "m", of(400))
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = q.Reserve(t.Context(), "red", "other", "3", "m", of(100))
		require.NoError(t, err)
		s, reserved := spent(t, q)
		require.Zero(t, s.Tokens)
		require.Equal(t, int64(500), reserved.Tokens)

		_, err = q.Reserve(t.Context(), "red", "s", "4", "m", of(300)) // the process of the second one has died
		require.NoError(t, err)
		s, reserved = spent(t, q)
		require.Equal(t, int64(400), s.Tokens)
		require.Equal(t, int64(400), reserved.Tokens)
	})
}

func TestADaysLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from midnight on
		q := daily(quota.Limits{TokensPerDay: 1000, USDPerDay: 1800}, new(quota.Memory))
		time.Sleep(18 * time.Hour)
		a, err := q.Reserve(t.Context(), "red", "a", "1", "m", of(5000))
		require.NoError(t, err, "nothing else is under way")
		_, err = q.Reserve(t.Context(), "red", "b", "2", "m", of(1))
		require.Equal(t, quota.Exceeded{Limit: quota.TokensPerDay, Most: 1000, InFlight: true}, exceeded(t, err))
		require.NoError(t, a.Settle(t.Context(), "m", of(800)))
		b, err := q.Reserve(t.Context(), "red", "b", "3", "m", of(50))
		require.NoError(t, err)
		_, err = q.Reserve(t.Context(), "red", "a", "4", "m", of(100))
		require.Equal(t, quota.Exceeded{Limit: quota.USDPerDay, Most: 1800, InFlight: true}, exceeded(t, err))
		_, err = q.Admit(t.Context(), "red", "c", quota.Want{Run: true})
		require.NoError(t, err, "something is left")

		require.NoError(t, b.Settle(t.Context(), "m", of(100)))
		over := quota.Exceeded{Limit: quota.USDPerDay, Most: 1800, After: 6 * time.Hour}
		_, err = q.Reserve(t.Context(), "red", "b", "5", "m", of(1))
		require.Equal(t, over, exceeded(t, err))
		_, err = q.Admit(t.Context(), "red", "c", quota.Want{Run: true})
		require.Equal(t, over, exceeded(t, err))
		_, err = q.Admit(t.Context(), "red", "c", quota.Want{Session: true})
		require.NoError(t, err, "no model is called for that")
		none, err := q.Reserve(t.Context(), "blue", "b", "5", "m", of(1e9))
		require.NoError(t, err)
		require.Nil(t, none)
		require.NoError(t, none.Settle(t.Context(), "m", of(1e9)))

		time.Sleep(6 * time.Hour)
		_, err = q.Reserve(t.Context(), "red", "b", "6", "m", of(1))
		require.NoError(t, err)
		s, reserved := spent(t, q)
		require.Zero(t, s)
		require.Equal(t, int64(1), reserved.Tokens)
	})
}

// However many sessions call models, a tenant spends one call more than its limit at
// most.
func TestConcurrentCallsOfATenant(t *testing.T) {
	days := new(quota.Memory)
	var all sync.WaitGroup
	for node := range 2 {
		q := daily(quota.Limits{TokensPerDay: 1000}, days)
		for i := range 20 {
			all.Go(func() {
				for n := range 20 {
					r, err := q.Reserve(t.Context(), "red", fmt.Sprint(node, i), fmt.Sprint(n), "m", of(30))
					if err == nil {
						err = r.Settle(t.Context(), "m", of(20))
					}
					if e, is := errors.AsType[*quota.Exceeded](err); err != nil && (!is || e.Limit != quota.TokensPerDay) {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	q := daily(quota.Limits{TokensPerDay: 1000}, days)
	s, reserved := spent(t, q)
	require.Zero(t, reserved)
	require.Positive(t, s.Tokens)
	require.LessOrEqual(t, s.Tokens, int64(1000))
	for n := s.Tokens; n < 1000; n += 20 { // alone, a session uses all that is left
		r, err := q.Reserve(t.Context(), "red", "last", fmt.Sprint(n), "m", of(30))
		require.NoError(t, err)
		require.NoError(t, r.Settle(t.Context(), "m", of(20)))
	}
	_, err := q.Reserve(t.Context(), "red", "last", "none", "m", of(30))
	require.False(t, exceeded(t, err).InFlight)
}

func TestLabels(t *testing.T) {
	q := daily(quota.Limits{}, nil)
	require.Equal(t, "red", q.Label("red"))
	require.Equal(t, "other", q.Label("anything"))
	require.Empty(t, q.Label(""))
	require.Empty(t, (*quota.Quota)(nil).Label("red"))
	require.Equal(t, []string{"red"}, q.Labels())
	many := map[string]quota.Limits{}
	for i := range 1000 {
		many[fmt.Sprintf("tenant-%03d", i)] = quota.Limits{}
	}
	q.Set(quota.Tenants{Named: many})
	require.Len(t, q.Labels(), quota.MaxLabels)
	require.Equal(t, "tenant-099", q.Label("tenant-099"))
	require.Equal(t, "other", q.Label("tenant-100"))
	q = daily(quota.Limits{}, nil)
	require.InDelta(t, 4.0, q.Cost(fact.TokenUsage{Prompt: 1, Completion: 1}, "unknown", "m"), 0)
	require.Zero(t, q.Cost(of(2), "unknown"))
}
