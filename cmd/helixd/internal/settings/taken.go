package settings

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Taken says, of an error that an address is in use, by which process as far as that can be
// told, and which flag chooses another one. Of other errors it says nothing.
func Taken(err error, address, flag string) string {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ""
	}
	_, port, _ := net.SplitHostPort(address) // it was listened on
	by := ""
	if name, pid := listenerOn(port); pid != "" {
		by = fmt.Sprintf(" by %s (process %s)", name, pid)
	}
	return fmt.Sprintf("%s; choose another with %s", by, flag)
}
