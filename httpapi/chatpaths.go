package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// chatPath is one of the things that POST /chat can do.
type chatPath struct {
	fits func(*chat) bool
	take func(*chat, context.Context) (chatReply, error)
}

// chatPaths are the paths of facts 4.4; the first that fits is taken. A user
// message that fits none comes while the session is running: 409. Anything
// else that fits none is nothing new: 400.
var chatPaths = []chatPath{
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
// whose answers nobody has taken up yet.
func (c *chat) answersCalls() bool {
	return !c.body.regenerate && slices.ContainsFunc(c.body.answers, func(a chatAnswer) bool {
		return waitsFor(c.tree, a) != nil
	})
}

// waitsFor returns the open call that a client may answer, or nil.
func waitsFor(t *projector.Tree, a chatAnswer) *projector.Call {
	_, call := t.OpenCall(a.submission.ToolCallID)
	if call == nil || call.Done || call.Pending == nil || call.Pending.Kind == eventlog.PendingChild {
		return nil
	}
	return call
}

// submit submits each answer. If then none is open, the session is resumed, and
// the client gets how its message goes on; else a stream that waits. A user
// message behind the answers goes with them.
func (c *chat) submit(ctx context.Context) (chatReply, error) {
	further := c.speaks()
	if further && c.body.inputProblem != nil {
		return chatReply{}, c.body.inputProblem
	}
	open := len(c.tree.AwaitedCalls())
	for _, a := range c.body.answers {
		call := waitsFor(c.tree, a)
		if call == nil || !call.Awaited() {
			continue
		}
		if a.problem != nil {
			return chatReply{}, c.s.refused(a.problem)
		}
		a.submission.SessionID = c.body.session
		submitted, err := c.s.submit(ctx, a.submission)
		if err != nil {
			return chatReply{}, err
		}
		open = len(submitted.PendingToolCallIDs)
	}
	if further {
		return c.resumeWith(ctx)
	}
	if open == 0 {
		if err := c.goOn(ctx); err != nil {
			return chatReply{}, err
		}
	}
	return chatReply{after: position{sequence: c.shownUpTo()}, begin: true, messageID: c.body.knownAs()}, nil
}

// goOn resumes the session; that others were faster is as good.
func (c *chat) goOn(ctx context.Context) error {
	_, err := c.s.loop.Resume(ctx, engine.ResumeRequest{SessionID: c.body.session, Mode: eventlog.ModeContinue})
	if errors.Is(err, agentloop.ErrAlreadyCompleted) || errors.Is(err, agentloop.ErrNothingToResume) {
		return nil
	}
	return err
}

// asksAgain, path 2: regenerate-message.
func (c *chat) asksAgain() bool { return c.body.regenerate }

// speaksOverCalls, path 3: a user message while calls wait. They are abandoned.
func (c *chat) speaksOverCalls() bool {
	return c.speaksIntoOpenTurn() && len(c.tree.AwaitedCalls()) > 0
}

// speaksIntoOpenTurn, path 4: a user message to a session that was interrupted,
// waits, or whose process has died.
func (c *chat) speaksIntoOpenTurn() bool { return c.speaks() && c.tree.Turn != nil && !c.live() }

func (c *chat) resumeWith(ctx context.Context) (chatReply, error) {
	if c.body.inputProblem != nil {
		return chatReply{}, c.body.inputProblem
	}
	_, err := c.s.loop.Resume(ctx, engine.ResumeRequest{
		SessionID: c.body.session, Mode: eventlog.ModeWithMessage, Messages: []agentloop.Input{c.body.input},
	})
	return chatReply{after: position{sequence: c.tree.Head}, begin: true}, err
}

// beginsTurn, path 5: a user message to no session, or to one whose turn is
// over.
func (c *chat) beginsTurn() bool { return c.speaks() && c.tree.Turn == nil }

func (c *chat) execute(ctx context.Context) (chatReply, error) {
	if c.body.inputProblem != nil {
		return chatReply{}, c.body.inputProblem
	}
	agent := c.tree.AgentType
	if agent == "" {
		var err error
		if agent, err = c.s.chatAgent(c.namedAgent()); err != nil {
			return chatReply{}, err
		}
	}
	_, err := c.s.loop.Execute(ctx, engine.StartRequest{
		SessionID: c.body.session, AgentType: agent, Messages: []agentloop.Input{c.body.input},
		UserID: c.body.labels.userID, Tenant: CallerOf(ctx).Tenant, MayUse: CallerOf(ctx).mayUse, Tags: c.body.labels.tags,
	})
	return chatReply{after: position{sequence: c.tree.Head}, begin: true}, err
}

// hasLiveRun, path 6: nothing new, while a run goes on as far as the log knows.
func (c *chat) hasLiveRun() bool { return !c.speaks() && c.tree.Running() }

// attach gives the client what it lacks: behind its resume position if it says
// one, else behind the answers that it repeats, else the whole message. A run
// whose process has died is taken up.
func (c *chat) attach(ctx context.Context) (chatReply, error) {
	reply, err := c.s.resumePosition(c.r)
	if err != nil {
		return chatReply{}, err
	}
	if !c.live() {
		if err := c.goOn(ctx); err != nil {
			return chatReply{}, err
		}
	}
	if after, ok := c.takenUp(); ok && reply.whole {
		return chatReply{after: position{sequence: after}, begin: true, messageID: c.body.knownAs()}, nil
	}
	return reply, nil
}

// hasWaitedEnough, path 7: nothing new, and calls wait that have expired, or
// whose answers nobody has taken up. A session that was interrupted does not go
// on by itself.
func (c *chat) hasWaitedEnough() bool {
	if c.speaks() || !c.tree.Suspended() {
		return false
	}
	now := time.Now().UnixMilli()
	for _, s := range c.tree.Sessions() {
		if s.Turn == nil || s.Turn.Step == nil {
			continue
		}
		for _, call := range s.Turn.Step.Pending() {
			if call.Answer != nil || call.Expired(now) {
				return true
			}
		}
	}
	return false
}

// takeUp resumes the session, which times out what has expired.
func (c *chat) takeUp(ctx context.Context) (chatReply, error) {
	err := c.goOn(ctx)
	return chatReply{after: position{sequence: c.shownUpTo()}, begin: true, messageID: c.body.knownAs()}, err
}

// missesAnswer: the request is a repeated one, and what it asked for has
// happened. A client that has all of the answer has nothing to ask for: one that
// sends by itself would never stop.
func (c *chat) missesAnswer() bool {
	if c.speaks() {
		return false
	}
	if c.body.fromUser {
		return c.said() // the answer to an earlier message is in the history
	}
	_, ok := c.takenUp()
	return ok && c.body.assistant.steps() < stepsOf(c.tree)
}

// repeat answers it once more.
func (c *chat) repeat(context.Context) (chatReply, error) {
	if after, ok := c.takenUp(); ok {
		return chatReply{after: position{sequence: after}, begin: true, messageID: c.body.knownAs()}, nil
	}
	return chatReply{whole: true}, nil
}
