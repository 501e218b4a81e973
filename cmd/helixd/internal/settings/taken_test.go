package settings

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenOnATakenPort(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer first.Close()
	_, err = Listen(t.Context(), first.Addr().String(), "--listen ADDRESS")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "; choose another with --listen ADDRESS")
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, fmt.Sprintf(" by settings.test (process %d)", os.Getpid()))
	}
}

// A process that was killed has its ports for a moment.
func TestListenWaitsForAProcessThatEnds(t *testing.T) {
	tries := 0
	l, err := whenFree(t.Context(), func() (net.Listener, error) {
		if tries++; tries < 3 {
			return nil, syscall.EADDRINUSE
		}
		return net.Listen("tcp", "127.0.0.1:0")
	})
	require.NoError(t, err)
	l.Close()

	other := errors.New("no such host")
	_, err = whenFree(t.Context(), func() (net.Listener, error) { return nil, other })
	require.Equal(t, other, err)

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = whenFree(stopped, func() (net.Listener, error) { return nil, syscall.EADDRINUSE })
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}
