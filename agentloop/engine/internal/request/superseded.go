package request

import (
	"context"
	"time"

	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// supersededTimeout bounds how long a node that has lost a tree tries to say
// so.
const supersededTimeout = 5 * time.Second

// TellSuperseded says to the session's clients that another executor continues
// with it. This node is no writer of the tree any more, so the
// chunk belongs to no run and nothing truncates it. Nothing depends on it, so a
// failure is ignored.
func (c *Core) TellSuperseded(session, run string) {
	ctx, cancel := context.WithTimeout(c.Node.Ctx, supersededTimeout)
	defer cancel()
	reason := "another executor has taken over"
	_, err := c.Update(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		// One that is not active was taken back, not over.
		if t == nil || t.StreamStatus.Terminal() || t.Status != projector.SessionActive {
			return nil, nil
		}
		return []record.Draft{{Chunk: &eventlog.ExecutorSuperseded{Reason: &reason, Base: c.Clock.ChunkBase(&t.Session)}}}, nil
	})
	if err != nil {
		c.Logger.Warn("can't append that the run was taken over", eventlog.LogSession, session, eventlog.LogRun, run, "error", err)
	}
}
