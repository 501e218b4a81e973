// Package verify replays a session's records and asks today's code for each recorded
// decision.
package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Options restrict a verification.
type Options struct {
	// Run, if set, is the run whose decisions are compared, those of its
	// sub-agents meanwhile included.
	Run string
}

// Result is what [Session] has found.
type Result struct {
	SessionID string `json:"sessionId"`
	Head      uint64 `json:"head"`      // the last record that was read
	Records   int    `json:"records"`   // that were read
	Decisions int    `json:"decisions"` // that were compared, the one that differs included
	// Differs is the first decision that is another one today, nil if none is.
	Differs *Difference `json:"differs,omitempty"`
}

// Difference is a decision that is another one today.
type Difference struct {
	Sequence  uint64 `json:"sequence"`  // of the record that shows the decision
	SessionID string `json:"sessionId"` // of the tree, maybe a sub-agent's
	AgentType string `json:"agentType"`
	RunID     string `json:"runId"`
	Step      int    `json:"step,omitempty"`
	CallID    string `json:"callId,omitempty"`
	// Recorded and Today say in words what was done, and what would be.
	Recorded string `json:"recorded"`
	Today    string `json:"today"`
}

// Session replays a session: it folds its records, and for each record that is a
// decision of the loop it asks today's code, with the given agents, for the
// decision in the state before that record. Models, tools and recallers are not
// asked: their answers are recorded. Nothing is written, and nothing is called
// but approval gates ([agentloop.Tool]).
//
// The records must be all of the session from its first one on, truncated ones
// too, as [eventlog.Log]'s Read yields them. With other agents than it was
// recorded with, this finds the first place where a session would have gone
// another way: which model calls are made, which route a call has (executed,
// refused, approved first, to a client, to a sub-agent), what is taken of an
// answer, and when a run suspends, completes with what output, or fails with
// what code.
//
// Not seen is what a model or a tool would say today: a changed prompt or
// description changes nothing here. A gate sees the custom state before the
// record, which may be a little newer than what it saw then; one that emits or
// updates gets an error. Neither seen is when things happened, what a node
// decides about itself (claims, poisoned trees), and what an earlier version
// wrote that has no record here.
//
// Errors: those of records and ctx, that an agent is ill-defined, and that the session has no run
// of the options.
func Session(ctx context.Context, records iter.Seq2[eventlog.Record, error], agents []agentloop.Agent, o *Options) (Result, error) {
	defs, err := plan.Compile(agents)
	if err != nil {
		return Result{}, err
	}
	v := &verifier{ctx: ctx, tree: new(projector.Tree), defs: defs, async: map[string]decide.Effect{}}
	if o != nil {
		v.only = o.Run
	}
	for r, err := range records {
		if err != nil {
			return v.found, err
		}
		if v.found.Records == 0 && !begins(r) {
			return v.found, errors.New("agentloop: verify: the records don't begin with the session's first one")
		}
		if err := cmp.Or(ctx.Err(), v.see(r)); err != nil {
			return v.found, err
		}
		if v.found.Differs != nil {
			break
		}
	}
	if v.only != "" && !v.requested {
		return v.found, fmt.Errorf("agentloop: verify: the session has no run %q", v.only)
	}
	return v.found, nil
}

// begins reports whether a record may be a session's first one.
func begins(r eventlog.Record) bool {
	return r.Run == "" || r.Type == (*fact.UserMessage)(nil).Type() || r.Type == (*fact.RunRequested)(nil).Type()
}

// verifier compares what was decided with what would be.
//
// A driver decides and acts at different times, and what is under way it alone
// knows. So a decision counts as today's if it is one in any of the states in
// which it may have been made: for an append those since the last one, since
// each is followed by a new decision, and for what takes its time all before.
type verifier struct {
	ctx   context.Context
	tree  *projector.Tree
	defs  map[string]*plan.Agent
	only  string // a run; empty: all
	found Result
	// requested: the session has the run that is looked at alone.
	requested bool

	due   []decide.Effect          // appends that were decided since the last one
	async map[string]decide.Effect // by key, what takes its time and has no end yet
	fresh bool                     // due and async are of the tree as it is

	last      eventlog.Record // the one before
	companion string          // the call whose companion tool's records these are
}

// see compares a record with the state before it, and folds it.
func (v *verifier) see(r eventlog.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agentloop: panic: verifying record %d: %v\n%s", r.Sequence, p, debug.Stack())
		}
	}()
	v.requested = v.requested || r.Type == (*fact.RunRequested)(nil).Type() && r.Run == v.only
	appended := v.compare(r)
	v.found.Records++
	v.found.Head = r.Sequence
	if v.found.Differs != nil {
		return nil
	}
	others := r.Kind == eventlog.KindFact && !v.ours(r)
	projector.Apply(v.tree, r)
	v.found.SessionID = cmp.Or(v.found.SessionID, v.tree.SessionID)
	if appended || others {
		v.due = v.due[:0]
	}
	v.fresh = false
	if r.Kind == eventlog.KindFact || r.Type == (*eventlog.StepCommitted)(nil).Type() { // other chunks are no decisions
		v.decide()
	}
	v.last = r
	return nil
}

// ours reports whether the node that holds the tree wrote a record.
func (v *verifier) ours(r eventlog.Record) bool {
	c := v.tree.Claim
	return r.Run != "" && c != nil && r.Writer == c.Writer && !c.Fences()
}

// decide adds what is decided in the state as it is. It is not
// known which effects were under way then: maybe none, those that have produced output, or all that
// were decided.
func (v *verifier) decide() {
	if v.fresh {
		return
	}
	v.fresh = true
	shown := v.shown()
	for _, busy := range []func(string) bool{
		func(string) bool { return false },
		func(key string) bool { return shown[key] },
		func(key string) bool { return shown[key] || v.async[key] != nil },
	} {
		for _, e := range v.decider(busy).Decide(v.tree) {
			if key := e.Key(); key != "" {
				v.async[key] = e
			} else {
				v.due = append(v.due, e)
			}
		}
	}
}

// decider is today's. Aborts that were sent to remote agents leave no record, so it takes them
// as sent.
func (v *verifier) decider(busy func(string) bool) decide.Decider {
	stopped := map[string]bool{}
	for _, s := range v.tree.Sessions() {
		if decide.Aborting(s) {
			for c := range s.OpenCalls() {
				stopped[decide.StopKey(s.SessionID, c.ID)] = true
			}
		}
	}
	return decide.Decider{Agents: v.defs, Busy: busy, Stopped: stopped}
}

// shown are the keys of effects that have produced output and have not ended.
func (v *verifier) shown() map[string]bool {
	keys := map[string]bool{}
	for _, s := range v.tree.Sessions() {
		if s.Turn == nil || s.Turn.Step == nil {
			continue
		}
		if !s.Turn.Step.Recorded && s.Turn.Step.Streamed != nil {
			keys[decide.CallModel{Session: s.SessionID}.Key()] = true
		}
		for _, c := range s.Turn.Step.Pending() {
			if c.Streamed != nil {
				keys[decide.CallKey(s.SessionID, c.ID)] = true
			}
		}
	}
	return keys
}

// wanted reports whether an append of a kind is decided about a session that f accepts.
func wanted[E decide.Effect](v *verifier, s *projector.Session, f func(E) bool) bool {
	v.decide()
	return slices.ContainsFunc(v.due, func(e decide.Effect) bool {
		is, ok := e.(E)
		return ok && e.About() == s.SessionID && f(is)
	})
}

// counts reports whether decisions about a session are to be compared now.
func (v *verifier) counts(s *projector.Session) bool {
	root := v.tree.CurrentRun()
	return v.only == "" || s.Turn.RunID == v.only || root != nil && root.RunID == v.only && v.tree.Turn != nil
}

// judge records a comparison. today says what would be done; empty: what is decided about the
// session now, or about the call.
func (v *verifier) judge(r eventlog.Record, s *projector.Session, call string, same bool, recorded phrase, today string) {
	if !v.counts(s) {
		return
	}
	v.found.Decisions++
	if same {
		return
	}
	d := &Difference{
		Sequence: r.Sequence, SessionID: s.SessionID, AgentType: s.AgentType, RunID: s.Turn.RunID, CallID: call,
		Recorded: recorded.past(), Today: today,
	}
	if today == "" {
		d.Today = v.today(s, call)
	}
	if s.Turn.Step != nil {
		d.Step = s.Turn.Step.Number
	}
	v.found.Differs = d
}

// route is the route of a call today. Approval gates are asked.
func (v *verifier) route(s *projector.Session, call projector.Call) decide.Route {
	def := v.defs[s.AgentType].With(s.Turn.Tools)
	return decide.RouteOf(def, call, func() bool {
		c := agentloop.NewCall(agentloop.Call{
			SessionInfo: agentloop.SessionInfo{
				RootSessionID: v.tree.SessionID, SessionID: s.SessionID, AgentType: s.AgentType, UserID: v.tree.UserID,
				Tenant: v.tree.Tenant,
			},
			RunID: call.RunID, ToolName: call.Name, ID: call.ID,
			IdempotencyKey: v.tree.SessionID + ":" + call.RunID + ":" + call.ID,
		}, onlooker{s})
		must, _ := def.MustApprove(v.ctx, c, call.Arguments, slog.New(slog.DiscardHandler))
		return must
	})
}

// onlooker serves a call that can read the state and do nothing else.
type onlooker struct{ s *projector.Session }

var errOnlooker = errors.New("agentloop: a session is verified: nothing is written")

func (o onlooker) State() json.RawMessage { return o.s.CustomState.Bytes() }

func (onlooker) Update(func(json.RawMessage) ([]eventlog.PatchOp, error)) error { return errOnlooker }

func (onlooker) Emit(context.Context, string, json.RawMessage) error { return errOnlooker }

func (onlooker) RecordUsage(context.Context, string, float64) error { return errOnlooker }
