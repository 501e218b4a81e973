package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// RemoteAgent is an agent of another agent server (document 004,
// createRemoteSubAgentTool). The call's arguments are its first message, as
// JSON. A remote agent with tools of its own that wait for a person fails.
type RemoteAgent struct {
	Name         string // of the tool, behind SubAgentPrefix
	Description  string
	Transport    remote.Transport
	AgentType    string          // on that server
	Timeout      time.Duration   // of one call, from its start; required
	InputSchema  json.RawMessage // of an object; nil: {"message": string}
	OutputSchema json.RawMessage // what the output must fit; nil: anything
	// StreamRetries is how often in a row a broken stream is picked up again,
	// at most 50; 0: 3, negative: never. StreamRetryBase is the first pause; it doubles. 0: 100 ms.
	StreamRetries   int
	StreamRetryBase time.Duration
}

// CodeRemoteClientTool: a remote agent waits for a person, which is not
// supported.
const CodeRemoteClientTool = "remote_client_tool_unsupported"

// remoteAgent is a remote agent whose schemas have been checked.
type remoteAgent struct {
	RemoteAgent
	input, output *jsonschema.Resolved
}

func (d *definition) linkRemotes() error {
	for _, r := range d.RemoteAgents {
		switch {
		case r.Transport == nil:
			return fmt.Errorf("remote agent %s: no transport", r.Name)
		case r.Timeout <= 0:
			return fmt.Errorf("remote agent %s: it needs a time-out", r.Name)
		case r.StreamRetries > 50:
			return fmt.Errorf("remote agent %s: at most 50 stream retries", r.Name)
		case eventlog.ValidateID(r.AgentType) != nil:
			return fmt.Errorf("remote agent %s: it needs an agent type", r.Name)
		}
		if r.InputSchema == nil {
			r.InputSchema = json.RawMessage(messageSchema)
		}
		checked := &remoteAgent{RemoteAgent: r}
		var err error
		if checked.input, err = resolveObject(r.InputSchema); err != nil {
			return fmt.Errorf("remote agent %s: input schema: %w", r.Name, err)
		}
		if r.OutputSchema != nil {
			if checked.output, err = resolveAny(r.OutputSchema); err != nil {
				return fmt.Errorf("remote agent %s: output schema: %w", r.Name, err)
			}
		}
		tool := SubAgentPrefix + r.Name
		if err := d.offer(tool, r.Description, r.InputSchema); err != nil {
			return err
		}
		d.remotes[tool] = checked
	}
	return nil
}

// remoteCall is a call that another server works on.
type remoteCall struct {
	*task
	*remoteAgent
	c    *Call
	call projector.Call
	id   string // of the session, there and in this tree
	run  string // there
	// known: the other server may have the session already.
	known bool
}

// runRemote has another server work on a call and takes its stream over. What
// was taken over is in the log with its position: whoever goes on after a crash
// asks for the rest.
func (t *task) runRemote(ctx context.Context, c *Call, call projector.Call, agent *remoteAgent) error {
	r := &remoteCall{task: t, remoteAgent: agent, c: c, call: call, id: childID(t.session, projector.InfixRemote, c.ID)}
	r.known = call.Pending != nil || r.made()
	deadline := t.l.now() + agent.Timeout.Milliseconds()
	if p := call.Pending; p != nil {
		deadline = p.Deadline
	} else if err := checkArguments(agent.input, call.Arguments); err != nil {
		return t.refuse(ctx, c, call, CodeToolInput, "invalid arguments: "+err.Error())
	} else if code, problem := t.cantSpawn(r.id); problem != "" && !r.known {
		return t.dispatchFailed(ctx, c, call, code, problem)
	} else if err := r.create(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, time.Duration(deadline-t.l.now())*time.Millisecond, errToolTimeout)
	defer cancel()
	end, err := r.follow(limited)
	switch cause := context.Cause(ctx); {
	case err == nil: // it has ended, even if the run has been stopped meanwhile
		return r.settle(context.WithoutCancel(ctx), end)
	case cause != nil:
		r.stop(ctx, cause)
		return cause
	case errors.Is(context.Cause(limited), errToolTimeout):
		r.tell(context.WithoutCancel(ctx), r.Transport.Abort, "timeout")
		return r.close(ctx, nil, CodeToolTimeout, fmt.Sprintf("%v after %s", errToolTimeout, agent.Timeout))
	case r.recording(err):
		return err
	default:
		c.log(slog.LevelError, logDispatchFailed, "code", CodeToolFailed, "remote", true)
		return r.close(ctx, nil, CodeToolFailed, "the remote agent could not be run: "+err.Error())
	}
}

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
	facts := []fact{
		r.c.start(r.call),
		r.c.chunk(&eventlog.SubAgentStart{SubAgentType: r.AgentType, SubSessionID: r.id, CallID: r.c.ID, Base: r.c.base()}),
	}
	facts = append(facts, about(r.id, []fact{{f: &eventlog.SessionCreated{
		AgentType: r.AgentType, FactBase: r.l.factBase(r.id), Child: &eventlog.SubSession{
			ParentSessionID: r.session, CallID: r.c.ID, Mode: eventlog.SubSessionEphemeral, Remote: true,
		},
	}}})...)
	return r.append(ctx, append(facts, r.c.awaits(r.id, r.Timeout))...)
}

// recordError is a failure of our own log.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

func (r *remoteCall) recording(err error) bool {
	_, ours := errors.AsType[recordError](err)
	return ours
}

// begin starts the remote session, or finds out how it stands: a process
// before this one may have started it.
func (r *remoteCall) begin(ctx context.Context) error {
	request := remote.StartRequest{SessionID: r.id, AgentType: r.AgentType, Message: string(r.call.Arguments)}
	if r.known {
		status, err := r.Transport.Status(ctx, r.id)
		switch {
		case remote.IsNotFound(err): // it has never got there
		case err != nil:
			return err
		case status.Status == remote.StatusInterrupted, status.Status == remote.StatusRunning && !status.IsExecuting:
			s, err := r.Transport.Resume(ctx, remote.ResumeRequest{SessionID: r.id})
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

// follow takes over the remote stream up to its end.
func (r *remoteCall) follow(ctx context.Context) (remote.Event, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	var from uint64
	r.look(func(*projector.Session) {
		if child := r.tree.Get(r.id); child != nil {
			from = child.RemoteSequence
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	events, failed := make(chan remote.Event, maxTakenOver), make(chan error, 1)
	go func() {
		defer close(events)
		for ev, err := range remote.Follow(ctx, r.Transport, r.id, from, remote.FollowOptions{
			Retries: r.StreamRetries, RetryBase: r.StreamRetryBase,
		}) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- ev:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range events { //nolint:revive // until the goroutine has ended
		}
	}()
	for ev := range events {
		end, err := r.takeOver(ctx, ev, events)
		if end != nil || err != nil {
			return end, err
		}
	}
	select {
	case err := <-failed:
		return nil, err
	default:
		return nil, remote.ErrStreamDropped
	}
}

// maxTakenOver is how many remote chunks are appended at once.
const maxTakenOver = 200

// takeOver appends what has come of the remote stream with its position, and
// returns its end if that is there.
func (r *remoteCall) takeOver(ctx context.Context, ev remote.Event, more <-chan remote.Event) (end remote.Event, err error) {
	var facts []fact
	var position uint64
	for taken := 0; ev != nil; {
		chunk, ok := ev.(remote.ChunkEvent)
		if !ok {
			end = ev
			break
		}
		position = chunk.Sequence
		if c := r.own(chunk); c != nil {
			facts = append(facts, fact{c: c, run: r.c.RunID})
		}
		ev = nil
		if taken++; taken < maxTakenOver {
			select {
			case ev = <-more:
			default:
			}
		}
	}
	if position > 0 {
		facts = append(facts, about(r.id, []fact{{run: r.c.RunID, f: &eventlog.RemoteProgress{
			ToolCallID: r.c.ID, RunID: r.run, Sequence: position, FactBase: r.l.factBase(r.id),
		}}})...)
		if err := r.append(ctx, facts...); err != nil {
			return nil, recordError{err}
		}
	}
	return end, nil
}

// own returns a chunk as one of the sub-agent's session, or nil if it can't be
// one: what a server says is not taken for another session's. Its times are its
// own, for display only.
func (r *remoteCall) own(chunk remote.ChunkEvent) eventlog.Chunk {
	c := chunk.Chunk
	if !r.includes(eventlog.BaseOf(c).AgentID) {
		var members map[string]json.RawMessage
		if json.Unmarshal(chunk.Raw, &members) != nil {
			return nil
		}
		members["agentId"] = statusJSON(r.id)
		var err error
		if c, err = eventlog.DecodeChunk(statusJSON(members)); err != nil {
			return nil
		}
	}
	if _, err := eventlog.NewChunk(c, eventlog.Labels{}); err != nil {
		r.l.opts.Logger.Warn("a remote agent's chunk is left out", "session", r.session, "call", r.c.ID, "error", err)
		return nil
	}
	return c
}

// includes reports whether a session is the sub-agent's or one of its own
// sub-agents': another call's id may begin with this one's.
func (r *remoteCall) includes(session string) bool {
	rest, ok := strings.CutPrefix(session, r.id)
	return ok && (rest == "" || slices.ContainsFunc(
		[]string{projector.InfixCall, projector.InfixAgent, projector.InfixRemote},
		func(infix string) bool { return strings.HasPrefix(rest, infix) },
	))
}

// settle records how the remote session has ended.
func (r *remoteCall) settle(ctx context.Context, end remote.Event) error {
	switch end := end.(type) {
	case remote.ErrorEvent:
		return r.close(ctx, nil, CodeToolFailed, end.Error)
	case remote.EndEvent:
		switch {
		case end.Status == remote.StatusPaused:
			r.tell(ctx, r.Transport.Abort, "client tools are not supported in remote agents")
			return r.close(ctx, nil, CodeRemoteClientTool, "the remote agent waits for a person, which is not supported")
		case end.Status == remote.StatusInterrupted:
			return r.close(ctx, nil, CodeToolFailed, "the remote agent was interrupted")
		case r.output != nil:
			var v any
			err := json.Unmarshal(end.Output, &v)
			if err == nil {
				err = r.output.Validate(v)
			}
			if err != nil {
				return r.close(ctx, nil, CodeToolFailed, "the remote agent's output does not fit its schema: "+err.Error())
			}
		}
		if end.Output == nil {
			end.Output = json.RawMessage("null")
		}
		return r.close(ctx, end.Output, "", "")
	}
	return fmt.Errorf("%w: event %T", errPanicked, end)
}

// close records the call's outcome.
func (r *remoteCall) close(ctx context.Context, output json.RawMessage, code, message string) error {
	ended := &eventlog.RunEnded{RunID: r.run, Status: eventlog.RunCompleted, Output: output, FactBase: r.l.factBase(r.id)}
	shown := output
	if message != "" {
		message = cut(message)
		ended.Status, ended.Error, ended.ErrorCode = eventlog.RunFailed, message, code
		shown = statusJSON(map[string]string{"error": message})
	}
	if ended.RunID == "" {
		ended.RunID = "none"
	}
	return r.append(ctx, append(about(r.id, []fact{{run: r.c.RunID, f: ended}}),
		r.c.chunk(&eventlog.SubAgentEnd{
			SubAgentType: r.AgentType, SubSessionID: r.id, CallID: r.c.ID, Result: shown, Base: r.c.base(),
		}), r.c.result(output, code, message), r.c.end(output, code, message))...)
}

// stop hands on that the run was stopped. Where this process only leaves the
// run, the remote session goes on.
func (r *remoteCall) stop(ctx context.Context, cause error) {
	if !errors.Is(cause, errUnwanted) {
		return
	}
	tell, reason := r.Transport.Abort, ""
	stopped, softly := false, false
	r.look(func(s *projector.Session) {
		if s.Turn == nil || s.Turn.Stop == nil {
			return
		}
		stopped, reason = true, s.Turn.Stop.Reason
		if s.Turn.Stop.Kind == eventlog.StopInterrupt {
			tell, softly = r.Transport.Interrupt, true
		}
	})
	switch {
	case !stopped:
		return
	case !softly:
		r.noteStopped()
	}
	r.tell(context.WithoutCancel(ctx), tell, reason)
}

// stopRemote aborts the remote session of a call whose process has died, or
// was interrupted.
func (t *task) stopRemote(ctx context.Context, e StopRemote) {
	r := &remoteCall{
		task: t, remoteAgent: t.def.remotes[e.Call.Name], c: t.newCall("", e.Call), id: e.Call.Pending.Child,
	}
	defer r.noteStopped()
	reason := ""
	t.look(func(s *projector.Session) {
		if s.Turn != nil && s.Turn.Stop != nil {
			reason = s.Turn.Stop.Reason
		}
	})
	r.tell(ctx, r.Transport.Abort, reason)
}

// noteStopped remembers that the remote session is not to be aborted again.
func (r *remoteCall) noteStopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped[stopKey(r.session, r.c.ID)] = true
}

// remoteStopTimeout is how long a remote server has to answer to a stop.
const remoteStopTimeout = 10 * time.Second

// tell stops the remote session, as far as it can be reached.
func (r *remoteCall) tell(ctx context.Context, stop func(context.Context, string, string) error, reason string) {
	ctx, cancel := context.WithTimeout(ctx, remoteStopTimeout)
	defer cancel()
	if err := stop(ctx, r.id, reason); err != nil && !remote.IsNotFound(err) { // it has never got there
		r.l.opts.Logger.Warn("a remote agent could not be stopped", "session", r.session, "call", r.c.ID, "error", err)
	}
}
