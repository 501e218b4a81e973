package streams

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

const (

	// PeersSubject asks all servers that know the account for their identity; a client
	// needs no rights on the system account for it. Servers without a system account
	// don't answer.
	PeersSubject = "$SYS.REQ.ACCOUNT.PING.STATZ"
	// peersTimeout is how long servers may take to answer.
	peersTimeout = 500 * time.Millisecond
)

// checkPeers returns an error if a server that has a replica of one of the streams is too
// old. Servers that don't answer can't be checked: only the one to which l is connected
// always is.
func (l *Set) checkPeers(ctx context.Context, streams []*natsjs.StreamInfo) error {
	peers := map[string]bool{}
	for _, s := range streams {
		for _, name := range ServersOf(s) {
			peers[name] = true
		}
	}
	delete(peers, l.Conn.ConnectedServerName())
	if len(peers) == 0 {
		return nil
	}
	versions, err := AskPeers(ctx, l.Conn, peers, func(Peer) {})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if err := link.CheckServer(versions[name]); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
	}
	return nil
}

// Peer is what a server says of itself.
type Peer struct {
	Name    string    `json:"name"`
	Version string    `json:"ver"`
	Time    time.Time `json:"time"`
}

// AskPeers calls answered with the answer of each of the servers that answers in time, and returns their versions.
func AskPeers(ctx context.Context, nc *nats.Conn, servers map[string]bool, answered func(Peer)) (map[string]string, error) {
	sub, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return nil, fmt.Errorf("jetstream: ask the servers: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	if err := nc.PublishRequest(PeersSubject, sub.Subject, []byte(`{"include_unused":true}`)); err != nil {
		return nil, fmt.Errorf("jetstream: ask the servers: %w", err)
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
			Server Peer `json:"server"`
		}
		if json.Unmarshal(m.Data, &answer) == nil && servers[answer.Server.Name] {
			versions[answer.Server.Name] = answer.Server.Version
			answered(answer.Server)
		}
	}
	return versions, nil
}

// ServersOf returns the names of the servers of a cluster that have a replica of a
// stream.
func ServersOf(s *natsjs.StreamInfo) (names []string) {
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
