package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/remoteids"
	"github.com/helixd/helixd/agentloop/engine/internal/runs"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// remoteCall is a call that another server works on.
type remoteCall struct {
	*task
	*plan.RemoteAgent
	c    *toolCall
	call projector.Call
	id   string // of the session, there and in this tree
	run  string // there
	// known: the other server may have the session already.
	known bool
	ids   *remoteids.IDs
}

// runRemote has another server work on a call and copies its stream. The copied
// part is in the log with its position: after a crash, a node asks for the rest.
func (t *task) runRemote(ctx context.Context, c *toolCall, call projector.Call, agent *plan.RemoteAgent) error {
	r := &remoteCall{task: t, RemoteAgent: agent, c: c, call: call, id: projector.ChildID(t.session, projector.InfixRemote, c.ID)}
	begun := call.Pending != nil && !decide.Gated(call)
	r.known = begun || r.made()
	deadline := t.host.Millis() + agent.Timeout.Milliseconds()
	if begun {
		deadline = call.Pending.Deadline
	} else if code, problem := t.cantSpawn(r.id); problem != "" && !r.known {
		return t.dispatchFailed(ctx, c, call, code, problem)
	} else if err := r.create(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, time.Duration(deadline-t.host.Millis())*time.Millisecond, errToolTimeout)
	defer cancel()
	end, err := r.follow(limited)
	switch cause := context.Cause(ctx); {
	case err == nil: // it has ended, even if the run has been stopped meanwhile
		return r.settle(context.WithoutCancel(ctx), end)
	case cause != nil:
		r.stop(ctx, cause)
		return cause
	case errors.Is(context.Cause(limited), errToolTimeout):
		c.cause = upstream.Text(&upstream.Error{Host: r.address(), Reason: "no end in time", Check: r.setting("timeout")})
		r.tell(context.WithoutCancel(ctx), r.Transport.Abort, "timeout")
		return r.close(ctx, nil, agentloop.CodeToolTimeout, fmt.Sprintf("%v after %s", errToolTimeout, agent.Timeout))
	case r.recording(err):
		return err
	default:
		cause := r.explain(err)
		c.cause = upstream.Text(cause)
		c.log(slog.LevelError, logDispatchFailed, append([]any{"code", agentloop.CodeToolFailed, "remote", true}, upstream.Attrs(cause)...)...)
		problem := shorten.Error("the remote agent could not be run: " + err.Error())
		return r.close(ctx, nil, agentloop.CodeToolFailed, problem, c.outputError(problem))
	}
}

// explain says what the other server has done.
func (r *remoteCall) explain(err error) *upstream.Error {
	e := upstream.Explain("", r.setting("url"), err)
	e.Host = r.address()
	if refused, ok := errors.AsType[*remote.Error](err); ok {
		e.Status = refused.Status
		switch refused.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			e.Check = r.setting("headers")
		case http.StatusNotFound:
			e.Check = r.setting("agentType")
		}
	}
	return e
}

// address is the host of the other server, if the transport says so.
func (r *remoteCall) address() string {
	if t, ok := r.Transport.(interface{ Host() string }); ok {
		return t.Host()
	}
	return ""
}

// setting is one of the remote agent's in the configuration of its agent.
func (r *remoteCall) setting(name string) string { return "remoteAgents." + r.Name + "." + name }

// made reports whether the call has made its session before; a rollback may
// have gone back to before the call waited for it.
func (r *remoteCall) made() (made bool) {
	r.look(func(*projector.Session) {
		old := r.tree.Get(r.id)
		made = old != nil && old.Child != nil && old.Child.Remote &&
			old.Child.ParentSessionID == r.session && old.Child.CallID == r.c.ID
	})
	return made
}

// create records that the call waits for the remote session.
func (r *remoteCall) create(ctx context.Context) error {
	return r.append(ctx, append(r.c.approved(r.call),
		r.c.start(r.call),
		r.c.subAgentStart(r.AgentType, r.id),
		record.Draft{Agent: r.id, Fact: &fact.SessionCreated{
			AgentType: r.AgentType, Base: r.host.FactBase(r.id), Child: &fact.SubSession{
				ParentSessionID: r.session, CallID: r.c.ID, Mode: fact.SubSessionEphemeral, Remote: true,
			},
		}},
		r.c.awaits(r.id, r.Timeout),
	)...)
}

// recordError is a failure of our own log.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

func (r *remoteCall) recording(err error) bool {
	_, ours := errors.AsType[recordError](err)
	return ours
}

// begin starts the remote session, or reads its status: an earlier process
// may have started it.
func (r *remoteCall) begin(ctx context.Context) error {
	request := remote.StartRequest{SessionID: r.id, AgentType: r.AgentType, Message: string(r.call.Arguments)}
	if r.known {
		status, err := r.Transport.Status(ctx, r.id)
		switch {
		case remote.IsNotFound(err): // it has never got there
		case err != nil:
			return err
		case status.Status == remote.StatusInterrupted, status.Status == remote.StatusRunning && (!status.IsExecuting || r.interrupted()):
			s, err := r.Transport.Resume(ctx, remote.ResumeRequest{SessionID: r.id})
			if remote.IsAlreadyCompleted(err) || remote.IsAlreadyRunning(err) { // meanwhile, or since the answer to a first try was lost
				r.run = status.RunID
				return nil
			}
			r.run = s.RunID
			return err
		default:
			r.run = status.RunID
			return nil
		}
	}
	s, err := r.Transport.Start(ctx, request)
	r.run = s.RunID
	if remote.IsAlreadyCompleted(err) { // the answer to a first try was lost
		return nil
	}
	return err
}

// interrupted reports whether the caller's run before this one was interrupted. Its remote
// agent was, too, and may still be about to stop: only a resume voids that.
func (r *remoteCall) interrupted() (interrupted bool) {
	r.look(func(s *projector.Session) { interrupted = runs.SuspendedFor(s) == agentloop.ReasonInterrupted })
	return interrupted
}

// settle records how the remote session has ended.
func (r *remoteCall) settle(ctx context.Context, end remote.Event) error {
	switch end := end.(type) {
	case remote.ErrorEvent:
		return r.close(ctx, nil, agentloop.CodeToolFailed, end.Error)
	case remote.EndEvent:
		switch {
		case end.Status == remote.StatusPaused:
			r.tell(ctx, r.Transport.Abort, "client tools are not supported in remote agents")
			return r.close(ctx, nil, agentloop.CodeRemoteClientTool, "the remote agent waits for a person, which is not supported")
		case end.Status == remote.StatusInterrupted:
			return r.close(ctx, nil, agentloop.CodeToolFailed, "the remote agent was interrupted")
		}
		if err := plan.Fits(r.Output, end.Output); err != nil {
			return r.close(ctx, nil, agentloop.CodeToolFailed, "the remote agent's output does not fit its schema: "+err.Error())
		}
		if end.Output == nil {
			end.Output = json.RawMessage("null")
		}
		err := r.close(ctx, end.Output, "", "")
		if err != nil && unrecordable(err) {
			return r.close(ctx, nil, agentloop.CodeToolFailed, "the remote agent's output can't be recorded: "+err.Error())
		}
		return err
	}
	return fmt.Errorf("%w: event %T", ErrPanicked, end)
}

// close records the call's outcome, after the records that come first.
func (r *remoteCall) close(ctx context.Context, output json.RawMessage, code, message string, first ...record.Draft) error {
	ended := &fact.RunEnded{RunID: r.run, Status: fact.RunCompleted, Output: output, Base: r.host.FactBase(r.id)}
	shown := output
	if message != "" {
		message = shorten.Error(message)
		ended.Status, ended.Error, ended.ErrorCode = fact.RunFailed, message, code
		shown = decide.Encoded(map[string]string{"error": message})
	}
	if eventlog.ValidateID(ended.RunID) != nil { // it is the server's
		ended.RunID = "none"
	}
	first = append(first, record.Draft{Agent: r.id, Run: r.c.RunID, Fact: ended}, r.c.chunk(&eventlog.SubAgentEnd{
		SubAgentType: r.AgentType, SubSessionID: r.id, CallID: r.c.ID, Result: shown, Base: r.c.base(),
	}))
	return r.append(ctx, append(first, r.c.ended(output, code, message)...)...)
}
