package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// replicas reports servers that are gone or lag.
func (x *exam) replicas(context.Context) error {
	type lack struct {
		streams []string
		offline bool
		lag     uint64
	}
	lacks := map[string]*lack{}
	least, most := 0, 0
	var stuck []string
	for _, s := range x.existing(nil) {
		n := s.Config.Replicas
		if least == 0 || n < least {
			least = n
		}
		most = max(most, n)
		if s.Cluster == nil {
			continue
		}
		offline := 0
		for _, r := range s.Cluster.Replicas {
			if r.Offline {
				offline++
			}
			if r.Current && !r.Offline {
				continue
			}
			if lacks[r.Name] == nil {
				lacks[r.Name] = &lack{}
			}
			lacks[r.Name].streams = append(lacks[r.Name].streams, s.Config.Name)
			lacks[r.Name].offline = lacks[r.Name].offline || r.Offline
			lacks[r.Name].lag = max(lacks[r.Name].lag, r.Lag)
		}
		// A leader may not have noticed yet that it is alone.
		if s.Cluster.Leader == "" || 2*offline > len(s.Cluster.Replicas) {
			stuck = append(stuck, s.Config.Name)
		}
	}
	if len(stuck) > 0 {
		x.Problem(CheckReplicas, stuck[0], fmt.Sprintf("%s: no leader, or half of the servers or more are offline: nothing can be stored there", shortened(stuck)),
			fmt.Sprintf("start the servers that keep %s: more than half of them are needed (nats stream report)", shortened(stuck)))
	}
	for _, server := range slices.Sorted(maps.Keys(lacks)) {
		l := lacks[server]
		c := Check{ID: CheckReplicas, Status: Warning, Target: server}
		if l.offline {
			c.Found = fmt.Sprintf("server %s is offline: its replicas of %s are missing", server, shortened(l.streams))
			c.Advice = fmt.Sprintf("start server %s again; if it is gone for good, let another take its place: nats server cluster peer-remove %s", server, server)
		} else {
			c.Found = fmt.Sprintf("server %s is behind with %s (%d operations)", server, shortened(l.streams), l.lag)
			c.Advice = fmt.Sprintf("look again soon; if server %s stays behind, see to its disk, its network and its log", server)
		}
		x.Report(c)
	}
	switch {
	case len(stuck)+len(lacks) > 0 || most == 0:
	case most == 1:
		x.OK(CheckReplicas, "1 of each stream")
	case least == most:
		x.OK(CheckReplicas, "%d of each stream, all current", most)
	default:
		x.OK(CheckReplicas, "%d to %d of a stream, all current", least, most)
	}
	return nil
}

// durability reports what an acknowledged append survives.
func (x *exam) durability(context.Context) error {
	all := x.logStreams()
	d := streams.DurabilityOf(x.opts.Durability, all)
	if len(all) == 0 && x.opts.Durability == "" && x.opts.Replicas > 1 {
		d = eventlog.Durability(fmt.Sprintf("replicated×%d", x.opts.Replicas))
	}
	c := Check{ID: CheckDurability, Status: Healthy, Found: fmt.Sprintf("%s: %s", d, d.Survives())}
	switch d {
	case eventlog.DurabilityUnknown:
		c.Status = Warning
		c.Advice = "keep the streams on a cluster of three with nats.replicas: 3; or, on one server, set sync_interval: always in its jetstream block, which helixd can't see"
	case eventlog.DurabilityMemory:
		c.Status = Problem
		c.Advice = "keep the streams in files: storage can't be changed, so export the sessions (helixd export), delete the streams, let helixd serve create them, import"
	}
	x.Report(c)
	return nil
}
