package inspect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// leaving is a value during whose encoding the caller leaves.
type leaving struct {
	leave   context.CancelFunc
	encoded *int
}

func (l leaving) MarshalJSON() ([]byte, error) {
	*l.encoded++
	l.leave()
	return []byte("1"), nil
}

// A comparison whose caller has left encodes nothing more.
func TestADiffEndsWithItsCaller(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	encoded := 0
	_, err := patchOf(ctx, leaving{leave, &encoded}, leaving{leave, &encoded})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, encoded)
}
