package settings

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// closing is how long a process that was killed may still have its ports.
const closing = 2 * time.Second

// Listen listens on a TCP address. If that is in use, it waits a moment, since a daemon that
// was just killed has its ports until the system has removed it. Then the error says by
// which process, as far as that can be told, and which flag chooses another address.
func Listen(ctx context.Context, address, flag string) (net.Listener, error) {
	l, err := whenFree(ctx, func() (net.Listener, error) { return net.Listen("tcp", address) })
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w%s", err, taken(address, flag))
	}
	return l, err
}

// whenFree tries to listen until the address is free.
func whenFree(ctx context.Context, listen func() (net.Listener, error)) (net.Listener, error) {
	for last := time.Now().Add(closing); ; {
		l, err := listen()
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(last) || eventlog.Sleep(ctx, closing/40) != nil {
			return l, err
		}
	}
}

// taken says by which process an address is in use, as far as that can be told, and which
// flag chooses another one.
func taken(address, flag string) string {
	_, port, _ := net.SplitHostPort(address) // it was listened on
	by := ""
	if name, pid := listenerOn(port); pid != "" {
		by = fmt.Sprintf(" by %s (process %s)", name, pid)
	}
	return fmt.Sprintf("%s; choose another with %s", by, flag)
}
