package link

import (
	"context"
	"time"
)

// leaseTime is less than the least time after which a cluster elects another leader, 4 s:
// a leader that has heard from the majority since then is the only one.
const leaseTime = 3 * time.Second

// Leads reports whether the server that answers for a stream certainly is its leader. A
// server that was cut off from the others, or stopped for a while, believes for some more
// seconds that it leads, and lacks what the others have stored.
func (l *Link) Leads(ctx context.Context, stream string) bool {
	var info struct {
		Refusal
		Cluster struct {
			Replicas []struct {
				Offline bool          `json:"offline"`
				Active  time.Duration `json:"active"` // time since it was last heard
			} `json:"replicas"`
		} `json:"cluster"`
	}
	if err := l.AskLeader(ctx, "$JS.API.STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return false
	}
	heard := 1
	for _, r := range info.Cluster.Replicas {
		if !r.Offline && r.Active < leaseTime {
			heard++
		}
	}
	return 2*heard > len(info.Cluster.Replicas)+1
}
