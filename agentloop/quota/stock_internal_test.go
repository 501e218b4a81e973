package quota

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector/readmodel"
)

// none are read models of an empty log.
type none struct{}

func (none) TenantUse(context.Context, string, []string) (readmodel.TenantUse, error) {
	return readmodel.TenantUse{}, nil
}
func (none) Fresh(context.Context) readmodel.Fresh { return readmodel.Fresh{} }

// A request finds what its tenant has at the moment at which idle tenants are forgotten: it counts.
func TestARequestThatMeetsASweepCounts(t *testing.T) {
	q := New(Tenants{Default: Limits{Sessions: 1}}, none{}, nil)
	found := q.stock("red")
	q.sweepAt = 1
	q.stock("blue")
	found.lock <- struct{}{}
	require.True(t, found.removed)
	<-found.lock
	_, err := q.Admit(t.Context(), "red", "a", Want{Session: true})
	require.NoError(t, err)
	_, err = q.Admit(t.Context(), "red", "b", Want{Session: true})
	require.Error(t, err)
}
