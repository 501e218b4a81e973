package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/lane"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// drive has agents work on a session's inputs, in a separate log, and returns its records too.
func (f *frozen) drive(whole context.Context, agents []Agent) (result.Lane, []eventlog.Record, error) {
	ctx, cancel := context.WithTimeout(whole, f.o.SessionTime)
	defer cancel()
	d := &driver{frozen: f, log: memory.New(), id: f.base.ID, answered: map[string]bool{}}
	d.now.Store(f.base.Created.Timestamp)
	var ids atomic.Int64
	loop, err := engine.New(d.log, f.agents(agents), &engine.Options{
		Node: "lab", RetryDelay: time.Nanosecond,
		Now:   func() time.Time { return time.UnixMilli(d.now.Load()) },
		NewID: func() string { return fmt.Sprintf("lab-%06d", ids.Add(1)) },
	})
	if err != nil {
		return result.Lane{}, nil, err
	}
	d.loop = loop
	err = d.all(ctx)
	loop.Stop()
	var records []eventlog.Record
	for r, rerr := range d.log.Read(context.WithoutCancel(ctx), d.id, 0, 0) {
		if rerr != nil {
			err = cmp.Or(err, rerr)
			break
		}
		records = append(records, r)
	}
	if whole.Err() != nil { // the lab ends, which says nothing of the session
		return result.Lane{}, nil, context.Cause(whole)
	}
	if err != nil && ctx.Err() != nil {
		return result.Lane{Unjudged: fmt.Sprintf("the session was not driven to its end within %s", f.o.SessionTime)}, records, nil
	}
	if err != nil {
		return result.Lane{Unjudged: err.Error()}, records, nil
	}
	read := lane.Read(d.id, records, f.known)
	l := read.Lane
	l.Latency, l.Cost = f.latency, f.cost
	return l, records, nil
}

// driver drives one session.
type driver struct {
	*frozen
	log      eventlog.Log
	loop     *engine.Loop
	id       string
	now      atomic.Int64    // ms since the epoch
	answered map[string]bool // calls, by their ids
}

// all gives the session its inputs, each when the one before has come to rest.
func (d *driver) all(ctx context.Context) error {
	created := d.base.Created
	for i, in := range d.base.Inputs {
		look := d.begun
		if i > 0 {
			look = d.rest
		}
		tree, err := look(ctx)
		if err != nil {
			return err
		}
		if tree.Turn != nil {
			_, err = d.loop.Resume(ctx, engine.ResumeRequest{SessionID: d.id, Mode: fact.ModeWithMessage, Messages: in.Messages, Options: in.Options})
		} else {
			_, err = d.loop.Execute(ctx, engine.StartRequest{
				SessionID: d.id, AgentType: created.AgentType, Messages: in.Messages, State: created.State, UserID: created.UserID,
				Tenant: created.Tenant, Tags: created.Tags, Metadata: created.Metadata, Options: in.Options,
			})
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
		if err := d.answer(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begun returns the state with which the session begins: of a fork, another session's.
func (d *driver) begun(ctx context.Context) (*projector.Tree, error) {
	tree := new(projector.Tree)
	if len(d.base.Begun) == 0 {
		return tree, nil
	}
	_, err := eventlog.Import(ctx, d.log, d.id, each(d.base.Begun), eventlog.ImportOptions{Restore: projector.TranslateRestore})
	if err != nil {
		return nil, fmt.Errorf("the beginning of the fork: %w", err)
	}
	for _, r := range d.base.Begun {
		projector.Apply(tree, r)
	}
	return tree, nil
}

// answer gives the calls that wait their recorded answers, until none is left that has one.
func (d *driver) answer(ctx context.Context) error {
	for {
		tree, err := d.rest(ctx)
		if err != nil {
			return err
		}
		some := false
		for _, a := range tree.AwaitedCalls() {
			if d.answered[a.Call.ID] {
				continue
			}
			found, ok := d.take(a.Session.AgentType, a.Session.SessionID, lane.CallKey(a.Call.Name, a.Call.Arguments), a.Call.ID, func(r lane.Found) bool {
				return r.Answer != nil && (r.Answer.Kind == fact.SubmitApproval) == (a.Call.Pending.Kind == fact.PendingApproval) || r.Answer != nil && r.Answer.Kind == fact.SubmitTimeout
			})
			if !ok {
				continue
			}
			d.answered[a.Call.ID] = true
			if err := d.submit(ctx, a, found.Answer); err != nil {
				return fmt.Errorf("the answer to %s: %w", a.Call.Name, err)
			}
			some = true
		}
		if !some {
			return nil
		}
		if _, err := d.loop.Resume(ctx, engine.ResumeRequest{SessionID: d.id}); err != nil {
			return fmt.Errorf("resuming: %w", err)
		}
	}
}

// submit stores a recorded answer. One that came too late does so again.
func (d *driver) submit(ctx context.Context, a projector.Awaited, f *fact.ResultSubmitted) error {
	sub := engine.Submission{
		SessionID: d.id, ToolCallID: a.Call.ID, Kind: f.Kind, Result: f.Result, Error: f.Error, Approved: f.Approved, Reason: f.Reason,
	}
	if f.Kind == fact.SubmitTimeout {
		if a.Call.Pending.Deadline == 0 {
			return nil // the agent waits without a limit now
		}
		d.now.Store(max(d.now.Load(), a.Call.Pending.Deadline+1))
		sub.Kind, sub.Error = fact.SubmitClientResult, "too late"
	}
	_, err := d.loop.Submit(ctx, sub)
	if _, invalid := errors.AsType[*eventlog.ValidationError](err); invalid {
		return nil // the call still waits, which the comparison shows
	}
	if errors.Is(err, agentloop.ErrAlreadyCompleted) {
		return nil
	}
	return err
}

// rest returns the state in which nothing of the tree runs.
func (d *driver) rest(ctx context.Context) (*projector.Tree, error) {
	tree := new(projector.Tree)
	for r, err := range d.log.Follow(ctx, d.id, 0) {
		if err != nil {
			return nil, err
		}
		if projector.Apply(tree, r); resting(tree) && tree.Head >= d.head(ctx) {
			return tree, nil
		}
	}
	return nil, context.Cause(ctx)
}

func (d *driver) head(ctx context.Context) uint64 {
	head, err := d.log.Head(ctx, d.id)
	if err != nil {
		return 0
	}
	return head
}

func resting(t *projector.Tree) bool {
	for _, s := range t.Sessions() {
		if (s.Child == nil || !s.Child.Remote) && s.Running() {
			return false
		}
	}
	return t.CurrentRun() != nil
}
