package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// knows reports whether the session has one of the messages already: who sends
// it again has missed the answer.
func knows(t *projector.Tree, messages []agentloop.Input) bool {
	return slices.ContainsFunc(messages, func(in agentloop.Input) bool {
		return in.MessageID != "" && slices.ContainsFunc(t.Messages, func(m projector.Message) bool {
			return m.MessageID == in.MessageID && m.Content == in.Content
		})
	})
}

// Started names the run that a request began or found.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

func started(session, run string) Started {
	return Started{SessionID: session, StreamID: session, RunID: run}
}

// fact is a record to be appended: f or c.
type fact struct {
	f     eventlog.Fact
	c     eventlog.Chunk
	run   string
	call  string
	agent string // the session that a fact is about, if it is another one of the tree
}

// checkInputs refuses what a user's message must not have.
func checkInputs(messages []agentloop.Input) error {
	for _, m := range messages {
		var meta map[string]json.RawMessage
		if m.Metadata == nil || json.Unmarshal(m.Metadata, &meta) != nil {
			continue // it is validated with its record
		}
		if _, ours := meta[projector.OwnMetadata]; ours {
			return &eventlog.ValidationError{Field: "metadata." + projector.OwnMetadata, Reason: "is reserved"}
		}
	}
	return nil
}

// newRun returns the records of a request: the messages, then the run.
func (l *Loop) newRun(session string, mode eventlog.RunMode, messages []agentloop.Input) []fact {
	run := "run-" + l.opts.NewID()
	var facts []fact
	for _, m := range messages {
		facts = append(facts, fact{run: run, f: &eventlog.UserMessage{
			Content: m.Content, Files: m.Files, Metadata: m.Metadata, MessageID: m.MessageID, FactBase: l.factBase(session),
		}})
	}
	asked := &eventlog.RunRequested{RunID: run, Mode: mode, FactBase: l.factBase(session)}
	if l.opts.ExpireAfter > 0 {
		asked.ExpiresAt = asked.Timestamp + l.opts.ExpireAfter.Milliseconds()
	}
	return append(facts, fact{run: run, f: asked})
}

// askedRun is newRun for a request from outside, which may have a place in a
// trace.
func (l *Loop) askedRun(ctx context.Context, session string, mode eventlog.RunMode, messages []agentloop.Input) []fact {
	facts := l.newRun(session, mode, messages)
	facts[len(facts)-1].f.(*eventlog.RunRequested).TraceParent = traceParent(ctx)
	return facts
}

// resumed tells clients that run goes on with the session.
func (l *Loop) resumed(s *projector.Session, run string, mode eventlog.RunMode) fact {
	return fact{run: run, c: &eventlog.RunResumed{
		RunID: run, FromStepCount: s.StepCount, FromCheckpointID: latestCheckpoint(s), Mode: string(mode), Base: l.chunkBase(s),
	}}
}

func (l *Loop) chunkBase(s *projector.Session) eventlog.Base {
	return eventlog.Base{AgentID: s.SessionID, AgentType: s.AgentType, Timestamp: l.now(), Step: s.StepCount}
}

func latestCheckpoint(s *projector.Session) *string {
	cp := s.LatestCheckpoint()
	if cp == nil {
		return nil
	}
	id := cp.ID
	return &id
}

// propose returns what to append to a session in state t (nil: there is none),
// and which run the answer names. It is called again if another writer was first.
type propose func(t *projector.Tree) (facts []fact, run string, err error)

// request appends what propose makes of the session's state, and has the tree
// driven. agentType is a new session's.
func (l *Loop) request(ctx context.Context, session, agentType string, propose propose) (Started, error) {
	var run string
	t, ticket, err := l.appendWork(ctx, session, agentType, always, func(t *projector.Tree) (facts []fact, err error) {
		facts, run, err = propose(t)
		return facts, err
	})
	if err != nil {
		l.detach(session, run)
		return Started{}, err
	}
	if err := l.dispatchAsked(ctx, t, ticket); err != nil {
		return Started{}, err
	}
	return started(session, run), nil
}

func always(*projector.Tree) bool { return true }

// appendWork is update for what somebody has to drive: the tree is on the
// queue's list before the first append, where that is needed.
func (l *Loop) appendWork(
	ctx context.Context, session, agentType string, needed func(*projector.Tree) bool, propose func(*projector.Tree) ([]fact, error),
) (t *projector.Tree, ticket uint64, err error) {
	done := func() {}
	defer func() { done() }()
	charged := admission{l: l}
	// An append whose outcome is unknown counts as none, until the read models see it.
	defer func() { charged.done(t) }()
	t, err = l.update(ctx, session, func(t *projector.Tree) ([]fact, error) {
		facts, err := propose(t)
		if err != nil || len(facts) == 0 {
			return facts, err
		}
		if err := charged.admit(ctx, session, t, facts); err != nil {
			return nil, err
		}
		if ticket != 0 || !needed(t) {
			return facts, nil
		}
		if t != nil && t.AgentType != "" {
			agentType = t.AgentType
		}
		ticket, done, err = l.put(ctx, agentType, session)
		return facts, err
	})
	return t, ticket, err
}

// update appends what propose makes of the session's state (nil: there is no session),
// exactly once. It returns the state after that, nil with an error.
func (l *Loop) update(
	ctx context.Context, session string, propose func(*projector.Tree) ([]fact, error),
) (*projector.Tree, error) {
	if err := eventlog.ValidateClientSessionID(session); err != nil {
		return nil, err
	}
	read := false
	t, err := l.states.Update(ctx, session, l.opts.NewID, func(t *projector.Tree) ([]eventlog.Entry, error) {
		if read = true; l.ctx.Err() != nil {
			return nil, agentloop.ErrStopping
		}
		facts, err := propose(t)
		if err != nil {
			return nil, err
		}
		setActor(ctx, facts)
		return entriesOf(session, facts)
	})
	if !read && l.ctx.Err() != nil { // which explains why the log does not answer
		return nil, agentloop.ErrStopping
	}
	return t, err
}

// setActor records in facts who asked for them.
func setActor(ctx context.Context, facts []fact) {
	for _, x := range facts {
		if x.f != nil {
			eventlog.SetActor(ctx, x.f)
		}
	}
}

func entriesOf(session string, facts []fact) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, x := range facts {
		var err error
		about := session
		if x.agent != "" {
			about = x.agent
		}
		labels := eventlog.Labels{Run: x.run, Call: x.call}
		if x.c != nil {
			entries[i], err = eventlog.NewChunk(x.c, labels)
		} else {
			entries[i], err = eventlog.NewFact(about, x.f, labels)
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
