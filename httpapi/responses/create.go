package responses

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// Create answers POST /v1/responses: it begins a run, and answers with its response when that
// has ended, at once with background, or with its events with stream. The request is durable
// before the first byte of the answer. A client that leaves does not stop the run.
func (s *Routes) Create(w http.ResponseWriter, r *web.Request) error {
	key, err := web.IdempotencyKey(r.Header)
	if err != nil {
		return err
	}
	raw, err := r.ReadBody(w, api.MaxBody)
	if err != nil {
		return err
	}
	o, err := r.Parse(raw)
	if err != nil {
		return err
	}
	p, store, err := paramsOf(o)
	if err != nil {
		return err
	}
	if p.stream || !p.kept.Background { // it may take as long as the run
		if err := r.OpenStream(); err != nil { // before anything is changed
			return err
		}
	}
	ctx, cancel := r.Detached()
	defer cancel()
	c := &creation{s: s, r: r, params: p, store: store}
	if key != "" {
		c.name = nameOf(auth.CallerOf(ctx), key, raw)
	}
	begun, err := c.begin(ctx)
	if err != nil {
		return err
	}
	r.LeaveBody() // the answer may take long
	at, err := s.placeOf(ctx, begun)
	if err != nil {
		return err
	}
	return s.answer(w, r, at, p, store)
}

// answer answers with the response of a run that has begun.
func (s *Routes) answer(w http.ResponseWriter, r *web.Request, at place, p params, store bool) error {
	if !store {
		defer s.forget(r, at)
	}
	switch {
	case p.stream:
		return s.stream(w, r, at, -1)
	case p.kept.Background:
		f, err := s.now(r.Context(), at)
		if err != nil {
			return err
		}
		return r.OK(w, f.response())
	}
	ctx, cancel := r.WhileAllowed(r.Context(), at.session)
	defer cancel()
	f, err := s.await(ctx, at)
	if errors.Is(err, http.ErrServerClosed) && store && f.begun { // the run continues: an error would have clients repeat it
		err = nil
	}
	if err != nil {
		return err
	}
	web.NameSession(w.Header(), at.session)
	return r.OK(w, f.response())
}

// forget erases the session of a run that is not to be stored, unless a request keeps it that has continued it.
// If its run continues, since the client has left, a sweep erases it later.
func (s *Routes) forget(r *web.Request, at place) {
	ctx, cancel := r.Detached()
	defer cancel()
	t, err := s.states.Head(ctx, at.session)
	if err == nil && t.Ephemeral && !t.Running() {
		_, err = s.loop.Admin.Erase(eventlog.WithHead(ctx, at.session, at.tree.Head), at.session)
	}
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		s.logger.WarnContext(ctx, "a response that is not to be stored is erased later", eventlog.LogSession, at.session, "error", err)
	}
}

// placeOf returns the place of a run that has begun.
func (s *Routes) placeOf(ctx context.Context, begun engine.Started) (place, error) {
	t, err := s.states.Head(ctx, begun.SessionID)
	if err != nil {
		return place{}, err
	}
	if run := t.RunOf(begun.RunID); run != nil {
		return place{session: begun.SessionID, tree: t, run: run}, nil
	}
	return place{}, eventlog.ErrSessionNotFound
}

// creation is a POST /v1/responses that is being carried out.
type creation struct {
	params
	s     *Routes
	r     *web.Request
	store bool
	name  string // of the run, and of a session that is made for it; empty: the request can't be repeated
}

// begin begins the run: in a new session, in the conversation, or where the previous response
// ended.
func (c *creation) begin(ctx context.Context) (engine.Started, error) {
	switch {
	case c.kept.Conversation:
		id := conversationID(c.session)
		t, err := c.s.session(c.r, c.session, noConversation(id))
		if err != nil {
			return engine.Started{}, err
		}
		if run := t.RunNamed(c.name); run != nil {
			return started(c.session, run), nil
		}
		if t.Running() {
			return engine.Started{}, agentloop.ErrAlreadyRunning
		}
		return c.continues(ctx, c.session, t, "")
	case c.previous != "":
		return c.follows(ctx)
	}
	if len(c.input.answers) > 0 {
		return engine.Started{}, c.unknown(c.input.answers[0])
	}
	session, begun, err := c.newSession(ctx)
	if begun.RunID != "" || err != nil {
		return begun, err
	}
	agent, err := c.agent("")
	if err != nil {
		return engine.Started{}, err
	}
	return c.execute(ctx, session, agent, "", false)
}

func (c *creation) unknown(a answer) *Problem {
	if a.approval != "" {
		return &Problem{Status: 400, Message: fmt.Sprintf("No approval request found for %s.", a.approval), Param: a.param, Code: "approval_request_not_found"}
	}
	return noCall(a.param, a.ToolCallID)
}

// follows continues a previous response: in its session if that has not gone on since, else
// in a fork.
func (c *creation) follows(ctx context.Context) (engine.Started, error) {
	at, err := c.s.find(c.r, c.previous, noPrevious(c.previous))
	if err != nil {
		return engine.Started{}, err
	}
	if run := at.tree.RunNamed(c.name); run != nil {
		return started(at.session, run), nil
	}
	f, err := c.s.now(ctx, at)
	if err != nil {
		return engine.Started{}, err
	}
	if !f.ended {
		return engine.Started{}, &Problem{
			Status: 400, Message: fmt.Sprintf("Previous response with id '%s' is still in progress.", c.previous),
			Param: "previous_response_id", Code: "previous_response_in_progress",
		}
	}
	if c.store && !f.state.kept.Conversation && at.tree.CurrentRun() == at.run && !at.tree.Running() {
		s, err := c.continues(ctx, at.session, at.tree, at.run.RunID)
		if !errors.Is(err, agentloop.ErrNotLast) {
			return s, err
		}
	}
	end, err := c.s.endOf(ctx, at)
	if err != nil {
		return engine.Started{}, err
	}
	session, begun, err := c.newSession(ctx)
	if begun.RunID != "" || err != nil {
		return begun, err
	}
	if _, err := c.agent(at.tree.AgentType); err != nil {
		return engine.Started{}, err
	}
	then, err := c.s.states.At(ctx, at.session, end)
	if err != nil {
		return engine.Started{}, err
	}
	if _, err := c.answersTo(then); err != nil { // before a fork is made for nothing
		return engine.Started{}, err
	}
	if len(c.input.messages) == 0 && len(c.input.answers) == 0 {
		return engine.Started{}, missingInput()
	}
	if _, err := c.s.loop.TimeTravel.Fork(ctx, timetravel.ForkRequest{
		FromSessionID: at.session, At: timetravel.Target{Sequence: end}, NewSessionID: session, Tenant: auth.CallerOf(ctx).Tenant,
	}); err != nil {
		return engine.Started{}, err
	}
	begun, err = c.inFork(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrOutcomeUnknown) && !errors.Is(err, agentloop.ErrAlreadyRunning) {
		c.dropFork(session)
	}
	return begun, err
}

// inFork begins the first run of a fork.
func (c *creation) inFork(ctx context.Context, session string) (engine.Started, error) {
	t, err := c.s.states.Head(ctx, session)
	if err != nil {
		return engine.Started{}, err
	}
	// An equal request at the same time has made this fork, too. If it has begun the run already, the calls
	// that the request answers do not wait any more.
	if run := t.RunNamed(c.name); run != nil {
		return started(session, run), nil
	}
	return c.continues(ctx, session, t, "")
}

// dropFork erases the fork of a request that was refused: no client knows of it, and it has
// what a client may not want to be stored. A fork with a run stays: an equal request has begun it.
func (c *creation) dropFork(session string) {
	ctx, cancel := c.r.Detached()
	defer cancel()
	t, err := c.s.states.Head(ctx, session)
	if err == nil && len(t.Runs) == 0 {
		_, err = c.s.loop.Admin.Erase(eventlog.WithHead(ctx, session, t.Head), session)
	}
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		c.s.logger.ErrorContext(ctx, "the fork of a request that was refused could not be erased", eventlog.LogSession, session, "error", err)
	}
}

func missingInput() *Problem {
	return &Problem{Status: 400, Message: "Missing required parameter: 'input'.", Param: "input", Code: "missing_required_parameter"}
}

// endOf returns the last record of a run that has ended: where a fork of it begins.
func (s *Routes) endOf(ctx context.Context, at place) (uint64, error) {
	f, end := folderOf(at, nil), uint64(0)
	for r, err := range s.log.Read(ctx, at.session, at.run.StartSequence, at.tree.Head) {
		if err != nil {
			return 0, err
		}
		if f.ended {
			switch r.Type { // which say that the stream has ended with the run
			case (*fact.StreamEnd)(nil).Type(), (*fact.StreamFailed)(nil).Type(), (*fact.StreamPaused)(nil).Type():
				end = r.Sequence
			}
			break
		}
		if f.fold(r); f.ended && r.Type != (*fact.RunEnded)(nil).Type() {
			break // the next run's request
		}
		end = r.Sequence
	}
	return end, nil
}

// agent returns the agent of the run. has is the session's, or empty.
func (c *creation) agent(has string) (string, error) {
	switch named := c.model; {
	case named != "" && has != "" && named != has:
		return "", invalid("model", fmt.Sprintf("The conversation belongs to the agent '%s': a session keeps its agent.", has))
	case has != "":
		return has, nil
	case named != "":
		return named, nil
	case c.s.options.DefaultAgent != "":
		return c.s.options.DefaultAgent, nil
	}
	if all := c.s.loop.AgentTypes(); len(all) == 1 {
		return all[0], nil
	}
	return "", &Problem{Status: 400, Message: "Missing required parameter: 'model', the name of an agent.", Param: "model", Code: "missing_required_parameter"}
}

// continues begins the next run of a session. after, if set, must be its last run.
func (c *creation) continues(ctx context.Context, session string, t *projector.Tree, after string) (engine.Started, error) {
	agent, err := c.agent(t.AgentType)
	if err != nil {
		return engine.Started{}, err
	}
	answers, err := c.answersTo(t)
	if err != nil {
		return engine.Started{}, err
	}
	if t.Turn == nil {
		return c.execute(ctx, session, agent, after, true)
	}
	options, err := c.runOptions()
	if err != nil {
		return engine.Started{}, err
	}
	mode := fact.ModeContinue
	if len(c.input.messages) > 0 {
		mode = fact.ModeWithMessage
	} else if len(answers) == 0 && len(t.AwaitedCalls()) == 0 && t.Status != projector.SessionInterrupted {
		return engine.Started{}, missingInput()
	}
	return c.s.loop.Resume(ctx, engine.ResumeRequest{
		SessionID: session, Mode: mode, Messages: c.input.messages, Answers: answers, Options: options, After: after,
	})
}

// answersTo returns the answers of the request to calls of the session. All calls that wait
// must be answered.
func (c *creation) answersTo(t *projector.Tree) ([]engine.Submission, error) {
	waiting := t.AwaitedCalls()
	var answers []engine.Submission
	for _, a := range c.input.answers {
		i := slices.IndexFunc(waiting, func(w projector.Awaited) bool {
			if a.approval != "" {
				return w.Call.Pending.Kind == fact.PendingApproval && approvalItemID(w.Call.Pending.ApprovalID) == a.approval
			}
			return w.Call.Pending.Kind == fact.PendingClient && (w.Call.ID == a.ToolCallID || w.Call.ID == shownCall(a.ToolCallID))
		})
		if i < 0 {
			return nil, c.unknown(a)
		}
		a.Submission.SessionID, a.Submission.ToolCallID = t.SessionID, waiting[i].Call.ID
		answers = append(answers, a.Submission)
		waiting = slices.Delete(waiting, i, i+1)
	}
	if len(waiting) == 0 {
		return answers, nil
	}
	if pending := waiting[0].Call.Pending; pending.Kind == fact.PendingApproval {
		return nil, &Problem{
			Status: 400, Message: fmt.Sprintf("No approval response found for %s.", approvalItemID(pending.ApprovalID)),
			Param: "input", Code: "missing_approval_response",
		}
	}
	return nil, noOutput("input", waiting[0].Call.ID)
}

// execute begins the first run of a session, or its next turn. existing: the session must be there, since
// it may have been erased meanwhile.
func (c *creation) execute(ctx context.Context, session, agent, after string, existing bool) (engine.Started, error) {
	if len(c.input.messages) == 0 {
		return engine.Started{}, missingInput()
	}
	options, err := c.runOptions()
	if err != nil {
		return engine.Started{}, err
	}
	caller := auth.CallerOf(ctx)
	h, err := c.s.loop.Execute(ctx, engine.StartRequest{
		SessionID: session, AgentType: agent, Messages: c.input.messages, UserID: caller.User, Tenant: caller.Tenant,
		Options: options, After: after, Existing: existing,
	})
	if err != nil {
		return engine.Started{}, err
	}
	return engine.Started{SessionID: h.SessionID, StreamID: h.SessionID, RunID: h.RunID}, nil
}

func (c *creation) runOptions() (fact.RunOptions, error) {
	client, err := eventlog.Marshal(c.kept)
	return fact.RunOptions{Name: c.name, Instructions: c.instructions, Tools: c.tools, Ephemeral: !c.store, Client: client}, err
}
