package jetstream

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// leaseTime is less than the least time after which a cluster elects another
// leader, 4 s: one that has heard from the majority since then is the only one.
const leaseTime = 3 * time.Second

// errStaleLeader tells of a server that knows less than the caller was told.
var errStaleLeader = errors.New("jetstream: the stream's leader knows less than was acknowledged")

// newsTime is how long a leader that could not be reached may take, once it can,
// to learn that there is another one: what was on its way to it reaches it first,
// and makes it look as if it had heard from the majority.
const newsTime = 250 * time.Millisecond

// endsBefore reports whether a session surely ends before a sequence. Of one answer
// that says so nobody knows which server gave it: the leader that is asked a
// moment later may be another one, which has what it lacks.
func (l *Log) endsBefore(ctx context.Context, session string, seq uint64) bool {
	if l.opts.Replicas <= 1 {
		return true
	}
	t := time.NewTimer(newsTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	head, _, err := l.head(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) || head >= seq {
		return false
	}
	return l.leads(ctx, layout.LogStream(l.partitionOf(session)))
}

// leads reports whether whoever answers for a stream is its leader for sure. One
// that was cut off from the others, or stopped for a while, takes itself for the
// leader for some seconds more, and knows nothing of what the others took.
func (l *Log) leads(ctx context.Context, stream string) bool {
	var info struct {
		refusal
		Cluster struct {
			Replicas []struct {
				Offline bool          `json:"offline"`
				Active  time.Duration `json:"active"` // since it was heard
			} `json:"replicas"`
		} `json:"cluster"`
	}
	if err := l.askLeader(ctx, "$JS.API.STREAM.INFO."+stream, struct{}{}, &info); err != nil {
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
