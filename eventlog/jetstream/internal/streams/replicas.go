package streams

import (
	"context"
	"maps"
	"slices"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// silence is how long a server with a replica may be silent before it counts as gone; it
// sends a message about once a second.
const silence = 5 * time.Second

// unheard reports whether the leader that reported i has not heard from r, though it has
// led for long enough.
func unheard(i *natsjs.StreamInfo, r *natsjs.PeerInfo) bool {
	since := i.Cluster.LeaderSince
	return r.Active == 0 && since != nil && i.TimeStamp.Sub(*since) > silence
}

// Replicas asks the leaders of the log's streams for the servers that have replicas, and
// whether they are up. From then on Durability is that of these streams. It fails if a stream has no leader, as when the quorum is lost.
func (l *Set) Replicas(ctx context.Context) (eventlog.Replicas, error) {
	all := eventlog.Replicas{}
	missing := map[string]bool{}
	var found []*natsjs.StreamInfo
	for p := range l.Partitions() {
		asked := time.Now()
		info, err := l.StreamInfo(ctx, layout.LogStream(p), "")
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
			if !slices.ContainsFunc(info.Cluster.Replicas, func(r *natsjs.PeerInfo) bool { return unheard(info, r) }) {
				break
			}
			if info, err = l.StreamInfo(ctx, layout.LogStream(p), ""); err != nil {
				return eventlog.Replicas{}, err
			}
		}
		wanted := 1 + len(info.Cluster.Replicas)
		found = append(found, info)
		present := wanted
		for _, r := range info.Cluster.Replicas {
			if r.Offline || r.Active > silence || unheard(info, r) {
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
