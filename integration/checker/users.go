package checker

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// user starts sessions of agents, one after the other, and answers what they
// ask.
type user struct {
	c    *Checker
	rand *rand.Rand
	slot int
}

func (c *Checker) newUser(slot int) *user { return &user{c, c.random("user", slot), slot} }

// use plays sessions until the load ends.
func (u *user) use() {
	for n := 0; u.c.settled.Err() == nil; n++ {
		agent := u.c.Agents[u.rand.IntN(len(u.c.Agents))]
		u.play(fmt.Sprintf("%s-%d-%d", agent, u.slot, n), agent)
	}
}

// play starts a session and stays with it until it has ended.
func (u *user) play(session, agent string) {
	l := u.c.ledger(session, agent)
	l.does("is to be started")
	defer l.does("")
	stop := u.c.follow(l, 1)
	defer stop()
	if !u.ask(l, "start", func(c *client.Client) (api.Started, error) {
		return c.Start(u.c.ctx, client.StartRequest{SessionID: session, AgentType: agent, Messages: client.Text("Go.")})
	}, nil, api.CodeAlreadyCompleted, api.CodeAlreadyRunning) {
		return
	}
	l.update(func() { l.created = true })
	interrupt := time.Duration(0)
	if u.slot > 0 && u.rand.IntN(8) == 0 {
		interrupt = time.Duration(1 + u.rand.Int64N(int64(60*u.c.tools.delay)))
	}
	for began := time.Now(); u.c.Sleep(100*time.Millisecond + time.Duration(u.rand.Int64N(int64(200*time.Millisecond)))); {
		if interrupt > 0 && time.Since(began) > interrupt {
			interrupt = 0
			l.update(func() { l.stopped = true })
			_ = u.c.anyNode(u.rand).Interrupt(u.c.ctx, session, "") // whether it stops is seen below
		}
		now, err := u.c.anyNode(u.rand).Status(u.c.ctx, session)
		if err != nil {
			if !u.c.unsure(err) && deployment.Code(err) == api.CodeNotFound {
				u.c.Note("a session that is there is not found", "%s: %v", session, err)
			}
			continue
		}
		l.does("is %s", now.Status)
		switch now.Status {
		case "completed":
			l.update(func() { l.ended = true })
			l.does("is read to its end")
			return
		case "paused":
			if !u.answer(l) {
				return
			}
		case "interrupted":
			u.resume(l)
		case "running": // somebody sees to it, sooner or later
		case "failed": // whether it may have is checked later
			l.update(func() { l.ended = true })
			return
		default:
			u.c.Violate(session, nil, "it is %s", now.Status)
			return
		}
	}
}

// answer answers what the session waits for, and has it continue.
func (u *user) answer(l *ledger) bool {
	now, err := u.c.anyNode(u.rand).Session(u.c.ctx, l.session)
	if err != nil {
		return true
	}
	for _, call := range now.PendingToolCalls {
		answer := client.Submission{SessionID: l.session, ToolCallID: call.ToolCallID, Kind: fact.SubmitClientResult, Result: json.RawMessage(`"answered"`)}
		if call.Kind == fact.PendingApproval {
			answer.Kind, answer.Result, answer.Approved = fact.SubmitApproval, nil, call.ToolCallID == "p1"
		}
		accepted := func() { l.accepted = append(l.accepted, call.ToolCallID) }
		ok := u.ask(l, "submit", func(c *client.Client) (api.Started, error) {
			_, err := c.SubmitToolResult(u.c.ctx, answer)
			return api.Started{}, err
		}, accepted, api.CodeNotFound)
		if !ok {
			return false
		}
	}
	u.resume(l)
	return true
}

// resume has a session continue. Whether it does is seen later.
func (u *user) resume(l *ledger) {
	u.ask(l, "resume", func(c *client.Client) (api.Started, error) {
		return c.Resume(u.c.ctx, client.ResumeRequest{SessionID: l.session})
	}, nil, api.CodeAlreadyCompleted, api.CodeAlreadyRunning)
}

// ask makes a request until a node answers it, or refuses it with one of the given
// codes. Only of an answer it notes the run and calls done, if any. Other refusals are
// violations; then, or if the trial ends, it reports false.
func (u *user) ask(l *ledger, what string, request func(*client.Client) (api.Started, error), done func(), codes ...api.Code) bool {
	for u.c.ctx.Err() == nil {
		began, err := request(u.c.anyNode(u.rand))
		code := deployment.Code(err)
		switch {
		case err == nil:
			l.update(func() {
				if began.RunID != "" {
					l.runs = append(l.runs, began.RunID)
				}
				if done != nil {
					done()
				}
			})
			return true
		case slices.Contains(codes, code):
			if done != nil {
				u.c.Note("a call that waits is not found", "%s: %v", l.session, err)
			}
			return true
		case code == api.CodeNotFound:
			u.c.Note("a session that is there is not found", "%s of %s: %v", what, l.session, err)
		case !u.c.unsure(err):
			u.c.Violate(l.session, nil, "%s is answered %v", what, err)
			return false
		}
		u.c.Sleep(50*time.Millisecond + time.Duration(u.rand.Int64N(int64(200*time.Millisecond))))
	}
	return false
}

// outcome returns what must not depend on what was broken.
func (c *Checker) outcome(session string) (string, error) {
	raw, err := c.say(c.node(0), "/sessions/"+session+"/state")
	var at struct{ State map[string]any }
	if err == nil {
		err = json.Unmarshal(raw, &at)
	}
	if err != nil {
		return "", fmt.Errorf("the state of %s: %w", session, err)
	}
	return outcomeOf(at.State), context.Cause(c.ctx)
}
