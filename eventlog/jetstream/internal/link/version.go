package link

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// LeastServer is the oldest server version on which an acknowledged append is safe.
const LeastServer = "2.15.2"

const LeastReason = "before it, compaction of blocks ignored sync_interval: always; before 2.12 there are no atomic batches"

// CheckServer returns an error that names the version if a server is too old.
func CheckServer(version string) error {
	v, _, _ := strings.Cut("v"+strings.TrimPrefix(version, "v"), "+")
	if semver.Canonical(v) != v {
		return fmt.Errorf("jetstream: server version %q is not understood: nats-server %s or later is needed (%s)",
			version, LeastServer, LeastReason)
	}
	if semver.Compare(v, "v"+LeastServer) < 0 {
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
