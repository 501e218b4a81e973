package agentloop

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Input is a user's message.
type Input struct {
	Content  string
	Files    []eventlog.MessageFile
	Metadata json.RawMessage // an object, or nil
}

// StartRequest begins a session (document 004, RemoteStartRequest).
type StartRequest struct {
	SessionID string
	AgentType string
	Messages  []Input // at least one
	State     json.RawMessage
	Metadata  map[string]string
}

// ResumeRequest continues a session (document 004, RemoteResumeRequest).
type ResumeRequest struct {
	SessionID string
	Messages  []Input // none: go on as it is
}

// Started names the run that a request began or found.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

// Start begins the first run of a session. It is idempotent: a session whose
// run goes on, or died without an end, answers with that run, which is driven
// on if nobody does. When it returns, the request is durable.
//
// Errors: ErrUnknownAgent, ErrAlreadyCompleted, ErrAlreadyRunning for another
// agent, ErrUseResume, *eventlog.ValidationError, and what the log returns.
func (l *Loop) Start(ctx context.Context, req StartRequest) (Started, error) {
	def := l.agents[req.AgentType]
	if def == nil {
		return Started{}, ErrUnknownAgent
	}
	if len(req.Messages) == 0 {
		return Started{}, &eventlog.ValidationError{Field: "message", Reason: "is required"}
	}
	return l.request(ctx, req.SessionID, func(t *projector.Tree) ([]fact, string, error) {
		base := l.factBase(req.SessionID)
		if t == nil {
			state := req.State
			if state == nil {
				state = def.InitialState
			}
			return append([]fact{{f: &eventlog.SessionCreated{
				AgentType: req.AgentType, State: state, Metadata: req.Metadata, FactBase: base,
			}}}, l.newRun(req.SessionID, eventlog.ModeStart, req.Messages)...), "", nil
		}
		switch {
		case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
			return nil, "", ErrAlreadyCompleted
		case t.AgentType != req.AgentType:
			return nil, "", ErrAlreadyRunning
		case len(t.Runs) == 0: // only outside producers wrote
			return l.newRun(req.SessionID, eventlog.ModeStart, req.Messages), "", nil
		case t.Status != projector.SessionActive:
			return nil, "", ErrUseResume
		}
		return nil, t.Turn.RunID, nil
	})
}

// Resume continues a session's open turn in a new run: after a crash, an
// interruption or a pause. On a live run without a message it answers with
// that run.
//
// Errors: eventlog.ErrSessionNotFound, ErrAlreadyCompleted, ErrAlreadyRunning,
// ErrNothingToResume, ErrUnknownAgent, and what the log returns.
func (l *Loop) Resume(ctx context.Context, req ResumeRequest) (Started, error) {
	return l.request(ctx, req.SessionID, func(t *projector.Tree) ([]fact, string, error) {
		switch {
		case t == nil:
			return nil, "", eventlog.ErrSessionNotFound
		case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
			return nil, "", ErrAlreadyCompleted
		case t.Turn == nil:
			return nil, "", ErrNothingToResume
		case l.agents[t.AgentType] == nil:
			return nil, "", ErrUnknownAgent
		case l.Live(req.SessionID) && len(req.Messages) > 0:
			return nil, "", ErrAlreadyRunning
		case l.Live(req.SessionID):
			return nil, t.Turn.RunID, nil
		}
		mode := eventlog.ModeContinue
		if len(req.Messages) > 0 {
			mode = eventlog.ModeWithMessage
		}
		facts := l.newRun(req.SessionID, mode, req.Messages)
		resumed := &eventlog.RunResumed{
			RunID: facts[0].run, FromStepCount: t.StepCount, Mode: string(mode),
			Base: eventlog.Base{
				AgentID: t.SessionID, AgentType: t.AgentType, Timestamp: l.now(), Step: t.StepCount,
			},
		}
		if cp := t.LatestCheckpoint(); cp != nil {
			resumed.FromCheckpointID = &cp.ID
		}
		return append(facts, fact{c: resumed, run: facts[0].run}), "", nil
	})
}

// fact is a record to be appended: f or c.
type fact struct {
	f    eventlog.Fact
	c    eventlog.Chunk
	run  string
	call string
}

// newRun returns the records of a request: the messages, then the run.
func (l *Loop) newRun(session string, mode eventlog.RunMode, messages []Input) []fact {
	run := "run-" + l.opts.NewID()
	var facts []fact
	for _, m := range messages {
		facts = append(facts, fact{run: run, f: &eventlog.UserMessage{
			Content: m.Content, Files: m.Files, Metadata: m.Metadata, FactBase: l.factBase(session),
		}})
	}
	return append(facts, fact{run: run, f: &eventlog.RunRequested{RunID: run, Mode: mode, FactBase: l.factBase(session)}})
}

// request appends what plan makes of the session's state (nil: there is none),
// and has the run driven. If somebody else writes in between, it plans anew.
func (l *Loop) request(ctx context.Context, session string, plan func(*projector.Tree) ([]fact, string, error)) (Started, error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return Started{}, err
	}
	for {
		if l.ctx.Err() != nil {
			return Started{}, ErrStopping
		}
		t, err := l.states.Head(ctx, session)
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			t = nil
		} else if err != nil {
			return Started{}, err
		}
		facts, run, err := plan(t)
		if err != nil {
			return Started{}, err
		}
		if len(facts) > 0 {
			run = facts[len(facts)-1].run
			head := uint64(0)
			if t != nil {
				head = t.Head
			}
			entries, err := entriesOf(session, facts)
			if err != nil {
				return Started{}, err
			}
			_, err = eventlog.AppendOnce(ctx, l.log, session, l.opts.NewID(), head, entries)
			if _, conflict := errors.AsType[*eventlog.ConflictError](err); conflict {
				continue
			}
			if err != nil {
				return Started{}, err
			}
		}
		l.drive(session)
		return Started{SessionID: session, StreamID: session, RunID: run}, nil
	}
}

func entriesOf(session string, facts []fact) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, x := range facts {
		var err error
		if x.c != nil {
			entries[i], err = eventlog.NewChunk(x.c, eventlog.Labels{Run: x.run, Call: x.call})
		} else {
			entries[i], err = eventlog.NewFact(session, x.f, eventlog.Labels{Run: x.run, Call: x.call})
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
