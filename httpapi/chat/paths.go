package chat

import (
	"context"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// path is one of the things that POST /chat can do.
type path struct {
	fits func(*chat) bool
	take func(*chat, context.Context) (portion, error)
}

// paths are what POST /chat can do; the first that fits is taken. If none fits, a new user
// message has come while the session is running: 409. Any other request without a fitting
// path contains nothing new: 400.
var paths = []path{
	{(*chat).answersCalls, (*chat).submit},           // 1
	{(*chat).asksAgain, (*chat).regenerate},          // 2
	{(*chat).speaksOverCalls, (*chat).resumeWith},    // 3
	{(*chat).speaksIntoOpenTurn, (*chat).resumeWith}, // 4
	{(*chat).beginsTurn, (*chat).execute},            // 5
	{(*chat).hasLiveRun, (*chat).attach},             // 6
	{(*chat).hasWaitedEnough, (*chat).takeUp},        // 7
	{(*chat).missesAnswer, (*chat).repeat},
}

// answersCalls, path 1: the last assistant message answers calls that wait, or
// whose answers no run has used yet.
func (c *chat) answersCalls() bool {
	return !c.body.regenerate && slices.ContainsFunc(c.body.answers, func(a toolAnswer) bool {
		return c.waitsFor(a) != nil
	})
}

// waitsFor returns the open call that a client may answer, or nil.
func (c *chat) waitsFor(a toolAnswer) *projector.Call {
	if c.open == nil {
		c.open = openCalls(c.tree)
	}
	return c.open[a.submission.ToolCallID]
}

// openCalls returns the open calls that a client may answer, by id.
func openCalls(t *projector.Tree) map[string]*projector.Call {
	open := map[string]*projector.Call{}
	for _, call := range t.OpenCalls() {
		if !call.Done && call.Pending != nil && call.Pending.Kind != fact.PendingChild {
			open[call.ID] = call
		}
	}
	return open
}

// submit submits each answer. If then none is open, the session is resumed, and
// the client gets how its message continues; else a stream that waits. A user
// message after the answers goes with them.
func (c *chat) submit(ctx context.Context) (portion, error) {
	further := c.speaks()
	if further && c.body.inputProblem != nil {
		return portion{}, c.body.inputProblem
	}
	open := len(c.tree.AwaitedCalls())
	for _, a := range c.body.answers {
		call := c.waitsFor(a)
		if call == nil || !call.Awaited() {
			continue
		}
		if a.problem != nil {
			return portion{}, c.s.control.Refused(a.problem)
		}
		a.submission.SessionID = c.body.session
		submitted, err := c.s.control.Submit(ctx, a.submission)
		if err != nil {
			return portion{}, err
		}
		open = len(submitted.PendingToolCallIDs)
	}
	if further {
		return c.resumeWith(ctx)
	}
	if open == 0 {
		if err := c.goOn(ctx); err != nil {
			return portion{}, err
		}
	}
	return portion{after: web.Position{Sequence: c.shownUpTo()}, begin: true, messageID: c.body.knownAs()}, nil
}

func (c *chat) goOn(ctx context.Context) error { return c.s.goOn(ctx, c.body.session) }

// asksAgain, path 2: regenerate-message.
func (c *chat) asksAgain() bool { return c.body.regenerate }

// speaksOverCalls, path 3: a user message while calls wait. They are abandoned.
func (c *chat) speaksOverCalls() bool {
	return c.speaksIntoOpenTurn() && len(c.tree.AwaitedCalls()) > 0
}

// speaksIntoOpenTurn, path 4: a user message to a session that was interrupted,
// waits, or whose process has died.
func (c *chat) speaksIntoOpenTurn() bool { return c.speaks() && c.tree.Turn != nil && !c.live() }

func (c *chat) resumeWith(ctx context.Context) (portion, error) {
	if c.body.inputProblem != nil {
		return portion{}, c.body.inputProblem
	}
	_, err := c.s.loop.Resume(ctx, engine.ResumeRequest{
		SessionID: c.body.session, Mode: fact.ModeWithMessage, Messages: []agentloop.Input{c.body.input},
	})
	return portion{after: web.Position{Sequence: c.tree.Head}, begin: true}, err
}

// beginsTurn, path 5: a user message to no session, or to one whose turn is
// over.
func (c *chat) beginsTurn() bool { return c.speaks() && c.tree.Turn == nil }

func (c *chat) execute(ctx context.Context) (portion, error) {
	if c.body.inputProblem != nil {
		return portion{}, c.body.inputProblem
	}
	agent := c.tree.AgentType
	if agent == "" {
		var err error
		if agent, err = c.s.agentFor(c.namedAgent()); err != nil {
			return portion{}, err
		}
	}
	_, err := c.s.loop.Execute(ctx, engine.StartRequest{
		SessionID: c.body.session, AgentType: agent, Messages: []agentloop.Input{c.body.input},
		UserID: c.body.labels.UserID, Tenant: auth.CallerOf(ctx).Tenant, Tags: c.body.labels.Tags,
	})
	return portion{after: web.Position{Sequence: c.tree.Head}, begin: true}, err
}

// hasLiveRun, path 6: nothing new, while the log shows a run in progress.
func (c *chat) hasLiveRun() bool { return !c.speaks() && c.tree.Running() }

// attach sends the client what it lacks: the frames after its resume position, else after
// the answers that it repeats, else the whole message. If the run's process has died, the
// run is resumed.
func (c *chat) attach(ctx context.Context) (portion, error) {
	reply, err := c.s.resumePosition(c.r)
	if err != nil {
		return portion{}, err
	}
	if !c.live() {
		if err := c.goOn(ctx); err != nil {
			return portion{}, err
		}
	}
	if after, ok := c.takenUp(); ok && reply.whole {
		return portion{after: web.Position{Sequence: after}, begin: true, messageID: c.body.knownAs()}, nil
	}
	return reply, nil
}

// hasWaitedEnough, path 7: nothing new, and open calls have expired, or have answers with
// which no run continued. A session that was interrupted does not resume by itself.
func (c *chat) hasWaitedEnough() bool {
	if c.speaks() || !c.tree.Suspended() {
		return false
	}
	now := time.Now().UnixMilli()
	for _, call := range c.tree.OpenCalls() {
		if !call.Done && (call.Answer != nil || call.Expired(now)) {
			return true
		}
	}
	return false
}

// takeUp resumes the session, which times out what has expired.
func (c *chat) takeUp(ctx context.Context) (portion, error) {
	err := c.goOn(ctx)
	return portion{after: web.Position{Sequence: c.shownUpTo()}, begin: true, messageID: c.body.knownAs()}, err
}

// missesAnswer: the request is a repetition, its work is done, and the client lacks a part
// of the answer. A client that has the whole answer gets none: one that sends
// automatically would never stop.
func (c *chat) missesAnswer() bool {
	if c.speaks() {
		return false
	}
	if c.body.fromUser {
		return c.said() // the answer to an earlier message is in the history
	}
	_, ok := c.takenUp()
	return ok && countSteps(c.body.assistant) < stepsOf(c.tree)
}

// repeat sends the answer again.
func (c *chat) repeat(context.Context) (portion, error) {
	if after, ok := c.takenUp(); ok {
		return portion{after: web.Position{Sequence: after}, begin: true, messageID: c.body.knownAs()}, nil
	}
	return portion{whole: true}, nil
}
