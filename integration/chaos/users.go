//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// user starts sessions of agents, one after the other, and answers what they
// ask.
type user struct {
	t    *trial
	rand *rand.Rand
	slot int
}

func (t *trial) newUser(slot int) *user { return &user{t, t.random("user", slot), slot} }

// use plays sessions until the load ends.
func (u *user) use() {
	for n := 0; u.t.settled.Err() == nil; n++ {
		agent := agentWalker
		if u.rand.IntN(3) == 0 {
			agent = agentBoss
		}
		u.play(fmt.Sprintf("%s-%d-%d", agent, u.slot, n), agent)
	}
}

// play starts a session and stays with it until it has ended.
func (u *user) play(session, agent string) {
	l := u.t.ledger(session, agent)
	l.does("is to be started")
	defer l.does("")
	stop := u.t.follow(l, 1)
	defer stop()
	if _, ok := u.ask(l, "/start", map[string]any{"sessionId": session, "agentType": agent, "message": "Go."}, "ALREADY_COMPLETED", "ALREADY_RUNNING"); !ok {
		return
	}
	l.update(func() { l.created = true })
	interrupt := time.Duration(0)
	if u.slot > 0 && u.rand.IntN(8) == 0 {
		interrupt = time.Duration(1 + u.rand.Int64N(int64(60*u.t.tools.delay)))
	}
	for began := time.Now(); u.t.sleep(100*time.Millisecond + time.Duration(u.rand.Int64N(int64(200*time.Millisecond)))); {
		if interrupt > 0 && time.Since(began) > interrupt {
			interrupt = 0
			l.update(func() { l.stopped = true })
			u.t.post(u.t.anyNode(u.rand), "/interrupt", map[string]any{"sessionId": session}, nil)
		}
		var now struct{ Status string }
		a := u.t.get(u.t.ctx, u.t.anyNode(u.rand), "/status?sessionId="+session)
		if !a.into(&now) {
			if a.code == "NOT_FOUND" {
				u.t.note("a session that is there is not found", "%s: %s", session, a)
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
			u.t.violate(session, nil, "it is %s", now.Status)
			return
		}
	}
}

// answer answers what the session waits for, and has it continue.
func (u *user) answer(l *ledger) bool {
	var now struct {
		PendingToolCalls []struct{ ToolCallID, Kind string }
	}
	if !u.t.get(u.t.ctx, u.t.anyNode(u.rand), "/sessions/"+l.session).into(&now) {
		return true
	}
	for _, call := range now.PendingToolCalls {
		body := map[string]any{"sessionId": l.session, "toolCallId": call.ToolCallID, "kind": "client-tool-result", "result": "answered"}
		if call.Kind == "approval" {
			body = map[string]any{"sessionId": l.session, "toolCallId": call.ToolCallID, "kind": "approval-response", "approved": call.ToolCallID == "p1"}
		}
		a, ok := u.ask(l, "/submit-tool-result", body, "NOT_FOUND")
		switch {
		case !ok:
			return false
		case a.status == http.StatusOK:
			l.update(func() { l.accepted = append(l.accepted, call.ToolCallID) })
		default:
			u.t.note("a call that waits is not found", "%s: %s", l.session, a)
		}
	}
	u.resume(l)
	return true
}

// resume has a session continue. Whether it does is seen later.
func (u *user) resume(l *ledger) {
	u.ask(l, "/resume", map[string]any{"sessionId": l.session}, "ALREADY_COMPLETED", "ALREADY_RUNNING")
}

// ask makes a request until a node answers it with 200 or one of the given
// codes. Other refusals are violations; then, or if the trial ends, it reports
// false.
func (u *user) ask(l *ledger, path string, body map[string]any, codes ...string) (a answer, ok bool) {
	for u.t.ctx.Err() == nil {
		a = u.t.post(u.t.anyNode(u.rand), path, body, nil)
		var began struct{ RunID string }
		switch {
		case a.into(&began):
			if began.RunID != "" {
				l.update(func() { l.runs = append(l.runs, began.RunID) })
			}
			return a, true
		case slices.Contains(codes, a.code):
			return a, true
		case a.code == "NOT_FOUND":
			u.t.note("a session that is there is not found", "%s %v: %s", path, body, a)
		case !a.unsure():
			u.t.violate(l.session, nil, "%s is answered %s", path, a)
			return a, false
		}
		u.t.sleep(50*time.Millisecond + time.Duration(u.rand.Int64N(int64(200*time.Millisecond))))
	}
	return a, false
}

// outcome returns what must not depend on what was broken.
func (t *trial) outcome(session string) (string, error) {
	a := t.cluster[0].say("/sessions/" + session + "/state")
	var at struct{ State map[string]any }
	if !a.into(&at) {
		return "", fmt.Errorf("the state of %s: %s", session, a)
	}
	return outcomeOf(at.State), context.Cause(t.ctx)
}
