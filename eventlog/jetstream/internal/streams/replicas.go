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

// leaderInfo is what a stream's leader reports.
type leaderInfo struct {
	link.Refusal
	Config  natsjs.StreamConfig `json:"config"`
	At      time.Time           `json:"ts"`
	Cluster struct {
		Leader   string    `json:"leader"`
		Since    time.Time `json:"leader_since"`
		Replicas []replica `json:"replicas"`
	} `json:"cluster"`
}

type replica struct {
	Name    string        `json:"name"`
	Offline bool          `json:"offline"`
	Active  time.Duration `json:"active"` // how long ago; 0: the leader has not heard from it
	Lag     uint64        `json:"lag"`
}

// unheard reports whether the leader has not heard from r, though it has led for long enough.
func (i *leaderInfo) unheard(r replica) bool {
	return r.Active == 0 && !i.Cluster.Since.IsZero() && i.At.Sub(i.Cluster.Since) > silence
}

func (l *Set) leaderInfo(ctx context.Context, partition int) (*leaderInfo, error) {
	var info leaderInfo
	return &info, l.AskLeader(ctx, "$JS.API.STREAM.INFO."+layout.LogStream(partition), struct{}{}, &info)
}

// Replicas asks the leaders of the log's streams for the servers that have replicas, and
// whether they are up. From then on Durability is that of these streams. It fails if a stream has no leader, as when the quorum is lost.
func (l *Set) Replicas(ctx context.Context) (eventlog.Replicas, error) {
	all := eventlog.Replicas{}
	missing := map[string]bool{}
	var found []*natsjs.StreamInfo
	for p := range l.Partitions() {
		asked := time.Now()
		info, err := l.leaderInfo(ctx, p)
		if err != nil {
			return eventlog.Replicas{}, err
		}
		if half := time.Since(asked) / 2; !info.At.IsZero() { // the delay may have been in one direction only
			apart := info.At.Sub(asked.Add(half)).Abs() - half
			all.Skew = max(all.Skew, apart.Milliseconds())
		}
		// A server whose message arrives while the leader answers is reported as if the leader
		// had not heard from it. That is rare, so the leader is asked again.
		for range 2 {
			if !slices.ContainsFunc(info.Cluster.Replicas, info.unheard) {
				break
			}
			if info, err = l.leaderInfo(ctx, p); err != nil {
				return eventlog.Replicas{}, err
			}
		}
		wanted := 1 + len(info.Cluster.Replicas)
		now := &natsjs.StreamInfo{Config: info.Config, Cluster: &natsjs.ClusterInfo{Leader: info.Cluster.Leader}}
		found = append(found, now)
		present := wanted
		for _, r := range info.Cluster.Replicas {
			now.Cluster.Replicas = append(now.Cluster.Replicas, &natsjs.PeerInfo{Name: r.Name})
			if r.Offline || r.Active > silence || info.unheard(r) {
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
