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

// leaderInfo is what a stream's leader reports. A server without a cluster reports none.
type leaderInfo struct {
	link.Refusal
	natsjs.StreamInfo
}

// unheard reports whether the leader has not heard from r, though it has led for long enough.
func (i *leaderInfo) unheard(r *natsjs.PeerInfo) bool {
	since := i.Cluster.LeaderSince
	return r.Active == 0 && since != nil && i.TimeStamp.Sub(*since) > silence
}

func (l *Set) leaderInfo(ctx context.Context, partition int) (*leaderInfo, error) {
	info := leaderInfo{StreamInfo: natsjs.StreamInfo{Cluster: &natsjs.ClusterInfo{}}}
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
		if half := time.Since(asked) / 2; !info.TimeStamp.IsZero() { // the delay may have been in one direction only
			apart := info.TimeStamp.Sub(asked.Add(half)).Abs() - half
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
		found = append(found, &info.StreamInfo)
		present := wanted
		for _, r := range info.Cluster.Replicas {
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
