package settings

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTaken(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer first.Close()
	address := first.Addr().String()
	_, err = net.Listen("tcp", address)
	require.Error(t, err)
	said := Taken(err, address, "--listen ADDRESS")
	require.Contains(t, said, "; choose another with --listen ADDRESS")
	if runtime.GOOS == "linux" {
		require.Contains(t, said, fmt.Sprintf(" by settings.test (process %d)", os.Getpid()))
	}
	require.Empty(t, Taken(errors.New("no such host"), address, "--listen ADDRESS"))
}
