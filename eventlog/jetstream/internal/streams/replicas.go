package streams

import (
	"context"
	"maps"
	"slices"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// silence is how long a server with a replica may be silent before it counts as gone; it
// sends a message about once a second.
const silence = 5 * time.Second

// Replicas asks the leaders of the log's streams for the servers that have replicas, and
// whether they are up. From then on Durability is that of these streams. It fails if a stream has no leader, as when the quorum is lost.
func (l *Set) Replicas(ctx context.Context) (eventlog.Replicas, error) {
	all := eventlog.Replicas{}
	missing := map[string]bool{}
	var found []*natsjs.StreamInfo
	for p := range l.Partitions() {
		var info struct {
			link.Refusal
			Config  natsjs.StreamConfig `json:"config"`
			At      time.Time           `json:"ts"`
			Cluster struct {
				Leader   string    `json:"leader"`
				Since    time.Time `json:"leader_since"`
				Replicas []struct {
					Name    string        `json:"name"`
					Offline bool          `json:"offline"`
					Active  time.Duration `json:"active"`
					Lag     uint64        `json:"lag"`
				} `json:"replicas"`
			} `json:"cluster"`
		}
		asked := time.Now()
		if err := l.AskLeader(ctx, "$JS.API.STREAM.INFO."+layout.LogStream(p), struct{}{}, &info); err != nil {
			return eventlog.Replicas{}, err
		}
		if half := time.Since(asked) / 2; !info.At.IsZero() { // the delay may have been in one direction only
			apart := info.At.Sub(asked.Add(half)).Abs() - half
			all.Skew = max(all.Skew, apart.Milliseconds())
		}
		// A leader that has not heard from a server reports that it was active 0 s ago.
		long := !info.Cluster.Since.IsZero() && info.At.Sub(info.Cluster.Since) > silence
		wanted := 1 + len(info.Cluster.Replicas)
		now := &natsjs.StreamInfo{Config: info.Config, Cluster: &natsjs.ClusterInfo{Leader: info.Cluster.Leader}}
		found = append(found, now)
		present := wanted
		for _, r := range info.Cluster.Replicas {
			now.Cluster.Replicas = append(now.Cluster.Replicas, &natsjs.PeerInfo{Name: r.Name})
			if r.Offline || r.Active > silence || r.Active == 0 && long {
				missing[r.Name] = true
				present--
			} else {
				all.Lag = max(all.Lag, r.Lag)
			}
		}
		all.Wanted = max(all.Wanted, wanted)
		if p == 0 || present < all.Present {
			all.Present = present
		}
	}
	l.setDurability(found)
	all.Missing = slices.Sorted(maps.Keys(missing))
	return all, nil
}
