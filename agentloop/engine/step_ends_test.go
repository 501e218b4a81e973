package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// stepEnds follows which steps of a tree have begun and not ended, record by
// record, without the fold: each step_start has one step_end or one
// step_discarded.
type stepEnds struct {
	t       *testing.T
	open    map[string]begun   // by session
	history map[string][]begun // what open was, by session
	due     []begun            // to be discarded next, for a rollback has ended them
	message map[string]bool    // by session: its run was interrupted for a message, whose run discards the step
}

type begun struct {
	since    uint64
	agent    string
	step     string // empty: none has begun
	recorded bool
}

// requireStepsEnd checks the records of a whole session tree.
func requireStepsEnd(t *testing.T, records []eventlog.Record) {
	t.Helper()
	tree := new(projector.Tree)
	ends := &stepEnds{t: t, open: map[string]begun{}, history: map[string][]begun{}, message: map[string]bool{}}
	for _, r := range records {
		projector.Apply(tree, r)
		if s := tree.Get(r.Agent); s != nil && s != &tree.Session && (s.Child == nil || s.Child.Remote) {
			continue // another server's
		}
		if r.Type == (*fact.SessionForked)(nil).Type() {
			for _, s := range tree.Sessions() {
				if st := s.Begun(); st != nil {
					ends.set(begun{r.Sequence, s.SessionID, st.ID, st.Recorded})
				}
			}
		}
		ends.see(r)
		requireResyncOfACheckpoint(t, tree, r)
	}
	require.Empty(t, ends.due)
	for _, s := range tree.Sessions() {
		if st := s.Begun(); st != nil {
			require.Equal(t, st.ID, ends.open[s.SessionID].step, s.SessionID)
		} else {
			require.Empty(t, ends.open[s.SessionID].step, s.SessionID)
		}
	}
}

// requireResyncOfACheckpoint checks that a stream_resync describes one checkpoint
// that its session has, or none.
func requireResyncOfACheckpoint(t *testing.T, tree *projector.Tree, r eventlog.Record) {
	t.Helper()
	c, err := r.Chunk()
	resync, ok := c.(*eventlog.StreamResync)
	if err != nil || !ok {
		return
	}
	s := tree.Get(r.Agent)
	require.Equal(t, resync.Reason, s.Resync)
	told := projector.Checkpoint{
		ID: resync.CheckpointID, StepCount: resync.StepCount, MessageCount: resync.MessageCount, StreamSequence: resync.FromSequence,
	}
	if told == (projector.Checkpoint{}) {
		require.Empty(t, s.Checkpoints, "record %d", r.Sequence)
		return
	}
	last := *s.LatestCheckpoint()
	last.RunID, last.Status, last.Timestamp = "", "", 0
	require.Equal(t, last, told, "record %d", r.Sequence)
}

func (e *stepEnds) set(b begun) {
	e.open[b.agent] = b
	e.history[b.agent] = append(e.history[b.agent], b)
}

func (e *stepEnds) see(r eventlog.Record) {
	now := e.open[r.Agent]
	if e.message[r.Agent] {
		require.Equal(e.t, (*fact.UserMessage)(nil).Type(), r.Type, "record %d: the run before was interrupted, and not its step", r.Sequence)
		e.message[r.Agent] = false
	}
	if c, err := r.Chunk(); r.Kind == eventlog.KindChunk && err == nil {
		switch c := c.(type) {
		case *eventlog.StepStart:
			require.Empty(e.t, now.step, "record %d: another step of %s has not ended", r.Sequence, r.Agent)
			e.set(begun{r.Sequence, r.Agent, *c.StepID, false})
		case *eventlog.StepEnd:
			require.Equal(e.t, *c.StepID, now.step, "record %d", r.Sequence)
			e.set(begun{since: r.Sequence, agent: r.Agent})
		case *eventlog.StepDiscarded:
			i := slices.IndexFunc(e.due, func(b begun) bool { return b.agent == r.Agent && b.step == c.StepID })
			require.True(e.t, i >= 0 || now.step == c.StepID, "record %d: %s of %s has not begun, or has ended", r.Sequence, c.StepID, r.Agent)
			require.NotEmpty(e.t, c.Reason)
			require.NotEmpty(e.t, c.RunID)
			if i >= 0 {
				e.due = slices.Delete(e.due, i, i+1)
			}
			if now.step == c.StepID {
				e.set(begun{since: r.Sequence, agent: r.Agent})
			}
			return
		}
	}
	require.Empty(e.t, e.due, "record %d: a rollback ends these", r.Sequence)
	f, err := r.Fact()
	if r.Kind != eventlog.KindFact || err != nil {
		return
	}
	switch f := f.(type) {
	case *fact.ModelTurn:
		if now.step == f.StepID {
			e.set(begun{r.Sequence, r.Agent, f.StepID, true})
		}
	case *fact.RunEnded:
		switch f.Status {
		case fact.RunCompleted, fact.RunFailed:
			require.Empty(e.t, now.step, "record %d ends a run and not its step", r.Sequence)
		case fact.RunStopped:
			e.message[r.Agent] = now.step != "" && !now.recorded
		}
	case *eventlog.Truncated:
		if f.AfterSequence > 0 {
			e.rolledBack(r.Sequence, f.AfterSequence)
		}
	}
}

// rolledBack goes back to what was open then: an answer that streamed then ends,
// and so does what has begun since.
func (e *stepEnds) rolledBack(at, to uint64) {
	for agent, now := range e.open {
		past := begun{agent: agent}
		for _, b := range e.history[agent] {
			if b.since <= to {
				past = b
			}
		}
		past.since = at
		if past.step != "" && !past.recorded {
			e.due = append(e.due, past)
		}
		if now.step != "" && now.step != past.step {
			e.due = append(e.due, now)
		}
		e.set(past)
	}
}
