package link

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LeastServer is the oldest server version on which an acknowledged append is safe.
const LeastServer = "2.15.2"

const LeastReason = "before it, compaction of blocks ignored sync_interval: always; before 2.12 there are no atomic batches"

// CheckServer returns an error that names the version if a server is too old.
func CheckServer(version string) error {
	v, ok := parseVersion(version)
	if !ok {
		return fmt.Errorf("jetstream: server version %q is not understood: nats-server %s or later is needed (%s)",
			version, LeastServer, LeastReason)
	}
	if least, _ := parseVersion(LeastServer); v.compare(least) < 0 {
		return fmt.Errorf("jetstream: server version %s is too old: nats-server %s or later is needed (%s)",
			version, LeastServer, LeastReason)
	}
	return nil
}

// checkConnected returns an error if the log must not be opened on the connection.
func (l *Link) checkConnected() error {
	l.version = l.Conn.ConnectedServerVersion()
	if l.version == "" {
		return errors.New("jetstream: not connected to a server")
	}
	return CheckServer(l.version)
}

// ServerProblem returns why the server to which l is connected now must not store
// anything: after a reconnect it may be another one than at the start. Without a
// connection it returns nil.
func (l *Link) ServerProblem() error {
	version := l.Conn.ConnectedServerVersion()
	if version == l.version || version == "" {
		return nil
	}
	return CheckServer(version)
}

// version is a server's version: three numbers, and the prerelease after them.
type version struct {
	numbers    [3]uint64
	prerelease string
}

// parseVersion reads MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD].
func parseVersion(s string) (v version, ok bool) {
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "v"), "+")
	core, prerelease, found := strings.Cut(s, "-")
	if found && prerelease == "" {
		return v, false
	}
	v.prerelease = prerelease
	parts := strings.Split(core, ".")
	if len(parts) != len(v.numbers) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 32)
		if err != nil || p != strconv.FormatUint(n, 10) {
			return v, false
		}
		v.numbers[i] = n
	}
	return v, true
}

// compare returns whether v is before (-1) or after (1) w. A prerelease is before its
// release; two prereleases of one release count as equal.
func (v version) compare(w version) int {
	if c := slices.Compare(v.numbers[:], w.numbers[:]); c != 0 {
		return c
	}
	released := func(v version) int {
		if v.prerelease == "" {
			return 1
		}
		return 0
	}
	return cmp.Compare(released(v), released(w))
}
