package httpapi

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/auth"
)

// The first line of a period says how many were left out before it.
func TestRefusalsTake(t *testing.T) {
	var f refusals
	now := time.Unix(1000, 0)
	for range refusalLines {
		skipped, ok := f.take(now)
		require.True(t, ok)
		require.Zero(t, skipped)
	}
	for range 5 {
		_, ok := f.take(now.Add(refusalPeriod - 1))
		require.False(t, ok)
	}
	skipped, ok := f.take(now.Add(refusalPeriod))
	require.True(t, ok)
	require.Equal(t, 5, skipped)
	skipped, ok = f.take(now.Add(refusalPeriod))
	require.True(t, ok)
	require.Zero(t, skipped)
}

// A failure to get keys is logged once a minute for each of its causes, of which there
// are not many.
func TestKeyFailuresAreKnown(t *testing.T) {
	var k keyFailures
	now := time.Unix(1000, 0)
	failed := func(cause string) error { return &auth.KeysError{Cause: errors.New(cause)} }
	require.False(t, k.known(errors.New("another error"), now))
	require.False(t, k.known(errors.New("another error"), now))
	require.False(t, k.known(failed("a"), now))
	require.True(t, k.known(failed("a"), now.Add(keyFailurePeriod-1)))
	require.False(t, k.known(failed("b"), now.Add(keyFailurePeriod-1)))
	require.False(t, k.known(failed("a"), now.Add(keyFailurePeriod)))
	for i := range 100 {
		k.known(failed(strconv.Itoa(i)), now.Add(keyFailurePeriod))
	}
	require.Len(t, k.logged, maxKeyFailures)
}
