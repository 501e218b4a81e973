package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	// leastServer is the oldest server that an acknowledged append is safe on.
	leastServer = "2.15.2"
	leastReason = "before it, compaction of blocks ignored sync_interval: always; before 2.12 there are no atomic batches"

	// peersSubject asks all servers that know the account who they are; a
	// client needs no rights on the system account for it. Servers without a
	// system account don't answer.
	peersSubject = "$SYS.REQ.ACCOUNT.PING.STATZ"
	// peersTimeout is how long servers may take to say who they are.
	peersTimeout = 500 * time.Millisecond
)

// checkServer refuses a server that is too old, by name.
func checkServer(version string) error {
	v, ok := parseVersion(version)
	if !ok {
		return fmt.Errorf("jetstream: server version %q is not understood: nats-server %s or later is needed (%s)",
			version, leastServer, leastReason)
	}
	if least, _ := parseVersion(leastServer); v.compare(least) < 0 {
		return fmt.Errorf("jetstream: server version %s is too old: nats-server %s or later is needed (%s)",
			version, leastServer, leastReason)
	}
	return nil
}

// checkConnected refuses what the log must not be opened on.
func (l *Log) checkConnected() error {
	l.version = l.nc.ConnectedServerVersion()
	if l.version == "" {
		return errors.New("jetstream: not connected to a server")
	}
	return checkServer(l.version)
}

// serverProblem tells why the server that l is connected to now must not
// store anything: after a reconnect it may be another one than at the start.
// Without a connection there is none.
func (l *Log) serverProblem() error {
	version := l.nc.ConnectedServerVersion()
	if version == l.version || version == "" {
		return nil
	}
	return checkServer(version)
}

// checkPeers refuses a cluster in which a server is too old that keeps one of
// the streams. Those that don't say what they are can't be judged: only the
// server that l is connected to always is.
func (l *Log) checkPeers(ctx context.Context, streams []*natsjs.StreamInfo) error {
	peers := map[string]bool{}
	for _, s := range streams {
		for _, name := range serversOf(s) {
			peers[name] = true
		}
	}
	delete(peers, l.nc.ConnectedServerName())
	if len(peers) == 0 {
		return nil
	}
	versions, err := l.askVersions(ctx, peers)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if err := checkServer(versions[name]); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
	}
	return nil
}

// askVersions returns the versions of those of the servers that answer in
// time.
func (l *Log) askVersions(ctx context.Context, servers map[string]bool) (map[string]string, error) {
	inbox := l.nc.NewInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("jetstream: ask the servers' versions: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	if err := l.nc.PublishRequest(peersSubject, inbox, []byte(`{"include_unused":true}`)); err != nil {
		return nil, fmt.Errorf("jetstream: ask the servers' versions: %w", err)
	}
	try, cancel := context.WithTimeout(ctx, peersTimeout)
	defer cancel()
	versions := map[string]string{}
	for len(versions) < len(servers) {
		m, err := sub.NextMsgWithContext(try)
		if err != nil { // also without responders
			return versions, context.Cause(ctx)
		}
		var answer struct {
			Server struct {
				Name    string `json:"name"`
				Version string `json:"ver"`
			} `json:"server"`
		}
		if json.Unmarshal(m.Data, &answer) == nil && servers[answer.Server.Name] {
			versions[answer.Server.Name] = answer.Server.Version
		}
	}
	return versions, nil
}

// serversOf names the servers of a cluster that keep a stream.
func serversOf(s *natsjs.StreamInfo) (names []string) {
	if s.Cluster == nil {
		return nil
	}
	if s.Cluster.Leader != "" {
		names = append(names, s.Cluster.Leader)
	}
	for _, r := range s.Cluster.Replicas {
		names = append(names, r.Name)
	}
	return names
}

// version is a server's version: three numbers, and what stands behind them
// before it is released.
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

// compare tells whether v is before (-1) or behind (1) w. A prerelease is
// before its release; two prereleases of one release are taken as equal.
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
