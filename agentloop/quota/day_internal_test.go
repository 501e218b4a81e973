package quota

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
)

// unreachable are days that fail when they are loaded or, if they are slow, when they are saved.
type unreachable struct{ slow bool }

func (u unreachable) Load(context.Context, string) ([]byte, uint64, error) {
	if u.slow {
		return nil, 0, nil
	}
	return nil, 0, errors.New("no answer")
}

func (u unreachable) Save(context.Context, string, []byte, uint64) (bool, error) {
	return false, errors.New("no answer")
}

// A node remembers reservations that failed for an hour, and only those that may be stored.
func TestANodeForgetsReservationsThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reserve := func(q *Quota, session string) {
			_, err := q.Reserve(t.Context(), "red", session, session, "m", fact.TokenUsage{Prompt: 1})
			require.Error(t, err)
		}
		limits := Tenants{Default: Limits{TokensPerDay: 1}}
		q := New(limits, nil, unreachable{slow: true})
		for i := range 10 {
			reserve(q, fmt.Sprint(i))
		}
		require.Len(t, q.failed, 10)
		time.Sleep(openFor + time.Second)
		reserve(q, "last")
		require.Len(t, q.failed, 1)

		q = New(limits, nil, unreachable{})
		reserve(q, "s")
		require.Empty(t, q.failed)
	})
}
