package deployment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	s := Samples{3, 1, 2}
	require.Equal(t, time.Duration(2), s.At(0.5))
	require.Equal(t, time.Duration(3), s.At(1))
	require.Zero(t, Samples(nil).At(0.5))
}
