package link

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// leaseTime is less than the least time after which a cluster elects another leader, 4 s:
// a leader that has heard from the majority since then is the only one.
const leaseTime = 3 * time.Second

// Leads reports whether the server that answers for a stream certainly is its leader. A
// server that was cut off from the others, or stopped for a while, believes for some more
// seconds that it leads, and lacks what the others have stored.
func (l *Link) Leads(ctx context.Context, stream string) bool {
	if l.Opts.Replicas <= 1 {
		return true
	}
	info, err := l.StreamInfo(ctx, stream, "")
	if err != nil {
		return false
	}
	heard := 1
	for _, r := range info.Cluster.Replicas {
		if !r.Offline && r.Active < leaseTime { // Active is the time since it was last heard
			heard++
		}
	}
	return 2*heard > len(info.Cluster.Replicas)+1
}

// Certain returns eventlog.ErrUnavailable if the server that answers for one of some
// streams may lead no more: then what it does not have may exist.
func (l *Link) Certain(ctx context.Context, streams ...string) error {
	for _, stream := range streams {
		if !l.Leads(ctx, stream) {
			return fmt.Errorf("jetstream: stream %s: %w: %w", stream, eventlog.ErrUnavailable, ErrStaleLeader)
		}
	}
	return nil
}
