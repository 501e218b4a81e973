package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// user is the person after a household's session "s". What it does depends on
// what the log says alone, so that it can continue with another process.
type user struct {
	log  eventlog.Log
	loop *engine.Loop
}

// play has the session run to its end: two turns of the boss, between which
// the runner comes home. It returns the first error, the loop's death say.
func (u user) play(ctx context.Context) error {
	if err := u.takeOver(ctx); err != nil {
		return err
	}
	for {
		t, err := u.until(ctx, func(t *projector.Tree) bool { return !t.Running() })
		switch {
		case err != nil:
			return err
		case t.Turn != nil:
			err = u.goOn(ctx, t, func(owner *projector.Session) bool { return owner.AgentType != "runner" })
		case t.TurnCount == 2:
			return nil
		default:
			err = u.between(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// takeOver begins the session, or resumes what a dead process had left after
// in the middle.
func (u user) takeOver(ctx context.Context) error {
	t, err := u.state(ctx)
	switch {
	case err != nil:
		return err
	case t.SessionID == "":
		_, err = u.loop.Start(ctx, engine.StartRequest{
			SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "go"}},
		})
	case t.Running(), t.Turn == nil && t.TurnCount == 1 && runner(t).Running():
		_, err = u.loop.Resume(ctx, engine.ResumeRequest{SessionID: "s"})
	}
	return err
}

// goOn answers the calls of some sessions and resumes.
func (u user) goOn(ctx context.Context, t *projector.Tree, answers func(owner *projector.Session) bool) error {
	for _, a := range t.AwaitedCalls() {
		if !answers(a.Session) {
			continue
		}
		sub := engine.Submission{SessionID: "s", ToolCallID: a.Call.ID}
		if a.Call.Pending.Kind == fact.PendingApproval {
			sub.Kind, sub.Approved, sub.Reason = fact.SubmitApproval, a.Call.ID != "p2", "as it should be"
		} else {
			sub.Kind, sub.Result = fact.SubmitClientResult, json.RawMessage(fmt.Sprintf(`"answer to %s"`, a.Call.ID))
		}
		got, err := u.loop.Submit(ctx, sub)
		if err != nil {
			return err
		}
		if got.Status != engine.SubmitAccepted {
			return fmt.Errorf("submit %s: %s", a.Call.ID, got.Status)
		}
	}
	_, err := u.loop.Resume(ctx, engine.ResumeRequest{SessionID: "s"})
	return err
}

// between has the runner finish though the boss's turn is finished, and begins the
// second turn.
func (u user) between(ctx context.Context) error {
	t, err := u.until(ctx, func(t *projector.Tree) bool { return !runner(t).Running() })
	if err != nil {
		return err
	}
	if t.Turn == nil && !runner(t).Over() {
		if err := u.goOn(ctx, t, func(owner *projector.Session) bool { return owner.AgentType == "runner" }); err != nil {
			return err
		}
		if _, err := u.until(ctx, func(t *projector.Tree) bool { return runner(t).Over() }); err != nil {
			return err
		}
	}
	_, err = u.loop.Execute(ctx, engine.StartRequest{
		SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "again"}},
	})
	return err
}

func runner(t *projector.Tree) *projector.Session { return t.Get("s-agent-r") }

// until follows the log to a state that fits.
func (u user) until(ctx context.Context, fits func(*projector.Tree) bool) (*projector.Tree, error) {
	t, err := u.state(ctx)
	if err != nil || fits(t) {
		return t, err
	}
	for r, err := range u.log.Follow(ctx, "s", t.Head) {
		if err != nil {
			return nil, fmt.Errorf("%w; the tree: %s", err, describe(t))
		}
		if projector.Apply(t, r); fits(t) {
			break
		}
	}
	return t, nil
}

// state is that at the head, empty if there is no session.
func (u user) state(ctx context.Context) (*projector.Tree, error) {
	t := new(projector.Tree)
	if _, err := u.log.Head(ctx, "s"); err != nil {
		return t, nil
	}
	for r, err := range u.log.Read(ctx, "s", 0, 0) {
		if err != nil {
			return nil, err
		}
		projector.Apply(t, r)
	}
	return t, nil
}

// describe says how the sessions of a tree stand.
func describe(t *projector.Tree) string {
	var b strings.Builder
	for _, s := range t.Sessions() {
		fmt.Fprintf(&b, "\n%s: %s", s.SessionID, s.Status)
		if run := s.CurrentRun(); run != nil {
			fmt.Fprintf(&b, ", run %s", run.Status)
		}
		if s.Turn != nil && s.Turn.Stop != nil {
			fmt.Fprintf(&b, ", to stop: %s", s.Turn.Stop.Kind)
		}
		if s.Turn != nil && s.Turn.Step != nil {
			fmt.Fprintf(&b, ", %s", s.Turn.Step.ID)
			for _, c := range s.Turn.Step.Pending() {
				fmt.Fprintf(&b, ", open %s (answered: %v)", c.ID, c.Answer != nil)
			}
		}
	}
	return b.String()
}
