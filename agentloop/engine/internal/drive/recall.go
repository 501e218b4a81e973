package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

var errRecallTimeout = fmt.Errorf("the recaller took longer than %s", agentloop.RecallTimeout)

// recall records what the agent is reminded of, or why of nothing.
func (t *task) recall(ctx context.Context) error {
	req := t.recallRequest()
	began := time.Now()
	found, err := t.askRecaller(ctx, req)
	if cause := context.Cause(ctx); cause != nil {
		return cause // the run was stopped: its next run recalls again
	}
	t.host.Metrics.Recalled(t.def, len(found), err, time.Since(began))
	f := &fact.MemoryRecalled{RunID: t.runID, Query: req.Query, Memories: newMemories(found, req.Known), Base: t.factBase()}
	if err == nil {
		if err = t.append(ctx, t.fact(f)); err == nil || !unrecordable(err) {
			return err
		}
		err = fmt.Errorf("what was recalled can't be recorded: %w", err)
	}
	t.logger().Warn("recall failed", "error", err)
	f.Memories, f.Error = nil, shorten.Error(cmp.Or(err.Error(), "the recaller failed"))
	return t.append(ctx, t.fact(f))
}

func (t *task) recallRequest() agentloop.RecallRequest {
	req := agentloop.RecallRequest{SessionInfo: t.sessionInfo()}
	t.look(func(s *projector.Session) {
		if s.Turn == nil { // it was just taken back
			return
		}
		var said []string
		for _, m := range slices.Backward(s.Messages) {
			if m.Role != projector.RoleUser || m.Hidden() {
				continue
			}
			if m.Turn != s.Turn.Number && len(said) > 0 { // a fork's turn may have begun with an older message
				break
			}
			said = append([]string{m.Content}, said...)
			if m.Turn != s.Turn.Number {
				break
			}
		}
		req.Query, req.Known = shorten.Text(strings.Join(said, "\n"), agentloop.MaxRecallQuery), s.RecalledIDs()
	})
	return req
}

// askRecaller asks the recaller, for a bounded time: no turn waits for one that
// ignores its context, but Loop.Stop does.
func (t *task) askRecaller(ctx context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agentloop.RecallTimeout, errRecallTimeout)
	defer cancel()
	var found []fact.RecalledMemory
	done := make(chan error, 1)
	t.host.Goroutines.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				t.logger().Error("recaller panicked", "panic", p, "stack", string(debug.Stack()))
				done <- errors.New("the recaller failed unexpectedly")
			}
		}()
		memories, err := t.def.Recall.Recall(ctx, req)
		found = memories
		done <- err
	})
	select {
	case err := <-done:
		if err != nil && errors.Is(context.Cause(ctx), errRecallTimeout) {
			err = errRecallTimeout
		}
		if err != nil {
			return nil, err
		}
		return found, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// newMemories are those that the conversation does not have yet, each once, as
// many as an agent is reminded of.
func newMemories(found []fact.RecalledMemory, known []string) []fact.RecalledMemory {
	known = slices.Clone(known)
	var out []fact.RecalledMemory
	room := agentloop.MaxRecalledText
	for _, m := range found {
		if len(out) == agentloop.MaxRecalled {
			break
		}
		if len(m.Content) > room || slices.Contains(known, m.MemoryID) {
			continue
		}
		if math.IsNaN(m.Score) || math.IsInf(m.Score, 0) { // JSON has no such numbers
			m.Score = 0
		}
		m.Score = max(m.Score, 0)
		known, room = append(known, m.MemoryID), room-len(m.Content)
		out = append(out, m)
	}
	return out
}
