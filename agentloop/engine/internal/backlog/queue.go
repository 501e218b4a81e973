// Package backlog holds the events that hooks have not received yet, in their order.
package backlog

import (
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/projector"
)

// Queue holds the events that hooks are still to be notified of. It is filled while records
// are folded, and emptied outside of all locks, one a session. Its user's lock
// guards it, and the tree.
type Queue struct {
	tree *projector.Tree
	defs map[string]*plan.Agent
	// request returns the hooks of the request that began a run of the root, or nil.
	request func(run string) *agentloop.Hooks

	due map[string][]Event // by session
	// results are those of calls that run beside others, by session; they
	// become due together.
	results map[string][]result
	began   map[string]int64 // when a call or a model call began, ms; by call id or effect key
	begun   map[string]bool  // companion calls whose beginning is queued, by effect key
}

// result is a call's result. Hooks are notified of results in the model's order.
type result struct {
	index  int // among the step's calls
	events []Event
}

// New returns an empty queue. request returns the hooks of the request that began
// a run of the root, or nil.
func New(tree *projector.Tree, defs map[string]*plan.Agent, request func(run string) *agentloop.Hooks) *Queue {
	return &Queue{
		tree: tree, defs: defs, request: request,
		due: map[string][]Event{}, results: map[string][]result{}, began: map[string]int64{},
		begun: map[string]bool{},
	}
}

// Of returns the hooks that concern a session of the tree, in their order.
func (q *Queue) Of(s *projector.Session) []*agentloop.Hooks {
	var hooks []*agentloop.Hooks
	for n := 0; s != nil && n <= len(q.tree.Children); n++ {
		if def := q.defs[s.AgentType]; def != nil && def.Hooks != nil {
			hooks = append([]*agentloop.Hooks{def.Hooks}, hooks...)
		}
		if s.Child == nil {
			break
		}
		s = q.tree.Get(s.Child.ParentSessionID)
	}
	if run := q.tree.CurrentRun(); run != nil {
		if extra := q.request(run.RunID); extra != nil {
			hooks = append(hooks, extra)
		}
	}
	return hooks
}

// Begins notes when a call or a model call began, for its duration.
func (q *Queue) Begins(key string, ms int64) { q.began[key] = ms }

// Next takes the next event that a session's hooks are to be notified of.
func (q *Queue) Next(session string) (ev Event, ok bool) {
	due := q.due[session]
	if len(due) == 0 {
		delete(q.due, session)
		return ev, false
	}
	q.due[session] = due[1:]
	return due[0], true
}

// Order has a session's hooks called before anything new is done for it,
// and those of a sub-agent's end before its caller continues. What is under way
// continues. An abort does not wait: it cuts hooks off, as it does everything,
// and what is due then comes after it. busy reports by an effect's key whether it is being
// performed.
func (q *Queue) Order(effects []decide.Effect, busy func(key string) bool) []decide.Effect {
	var out []decide.Effect
	for _, s := range q.tree.Sessions() {
		mine := slices.DeleteFunc(slices.Clone(effects), func(e decide.Effect) bool { return e.About() != s.SessionID })
		q.release(s, mine)
		q.announceCompanion(s, mine)
		hooks := decide.CallHooks{Session: s.SessionID}
		own := q.telling(s, busy)
		aborting := decide.Aborting(s)
		if !busy(hooks.Key()) && (aborting || !own && !q.childTelling(s, busy)) {
			out = append(out, mine...)
			continue
		}
		for _, e := range mine {
			if e.Key() != "" && busy(e.Key()) {
				out = append(out, e)
			}
		}
		if own && !aborting {
			out = append(out, hooks)
		}
	}
	return out
}

// telling reports whether hooks of a session are being called, or shall be.
func (q *Queue) telling(s *projector.Session, busy func(key string) bool) bool {
	return len(q.due[s.SessionID]) > 0 || busy(decide.CallHooks{Session: s.SessionID}.Key())
}

// childTelling is telling for sub-agents that have stopped and that a call of
// the session waits for.
func (q *Queue) childTelling(s *projector.Session, busy func(key string) bool) bool {
	return slices.ContainsFunc(q.tree.ChildrenOf(s.SessionID), func(child *projector.Session) bool {
		return !child.Running() && decide.Awaits(s, child.SessionID) && q.telling(child, busy)
	})
}

// release makes the results of calls due that ran beside each other: when the
// last of them is finished, or the session stops with some still waiting.
func (q *Queue) release(s *projector.Session, wanted []decide.Effect) {
	if len(q.results[s.SessionID]) == 0 {
		return
	}
	for _, e := range wanted {
		switch e.(type) {
		case decide.CommitStep, decide.Suspend, decide.Interrupt, decide.Finish, decide.Fail:
			q.releaseAll(s.SessionID)
			return
		}
	}
	def := q.defs[s.AgentType]
	if s.Turn != nil && s.Turn.Step != nil && def != nil {
		for _, c := range s.Turn.Step.Pending() {
			if def.Phase(c.Name) == plan.PhaseOrdinary {
				return
			}
		}
	}
	q.releaseAll(s.SessionID)
}

func (q *Queue) releaseAll(session string) {
	results := q.results[session]
	slices.SortStableFunc(results, func(a, b result) int { return a.index - b.index })
	for _, one := range results {
		q.due[session] = append(q.due[session], one.events...)
	}
	delete(q.results, session)
}

// announceCompanion queues the event of a companion tool before the driver executes it.
func (q *Queue) announceCompanion(s *projector.Session, wanted []decide.Effect) {
	for _, e := range wanted {
		run, ok := e.(decide.RunCompanion)
		name := decide.CallKey(s.SessionID, run.Call.ID)
		if !ok || q.begun[name] {
			continue
		}
		q.begun[name] = true
		def := q.defs[s.AgentType]
		if schema, ok := def.ArgumentsOf(run.Call.Name); ok && plan.CheckArguments(schema, run.Call.Arguments) == nil {
			q.enqueue(s, BeforeTool(run.Call.Name, run.Call.ID, run.Call.Arguments))
		}
	}
}

// enqueue queues events for a session's hooks.
func (q *Queue) enqueue(s *projector.Session, events ...Event) {
	q.due[s.SessionID] = append(q.due[s.SessionID], q.wanted(s, events)...)
}

// wanted keeps the events that a session's hooks handle.
func (q *Queue) wanted(s *projector.Session, events []Event) []Event {
	hooks := q.Of(s)
	var out []Event
	for _, ev := range events {
		if ev, handled := ev.For(hooks); handled {
			out = append(out, ev)
		}
	}
	return out
}

// BeforeTool is the event before a tool is executed.
func BeforeTool(tool, call string, args json.RawMessage) Event {
	return newEvent("beforeTool", agentloop.BeforeToolPayload{Tool: agentloop.HookTool{Name: tool}, ToolCallID: call, Arguments: args},
		func(h *agentloop.Hooks) hook[agentloop.BeforeToolPayload] { return h.BeforeTool })
}

// BeforeSubAgent is the event before a sub-agent is started.
func BeforeSubAgent(agent string, call projector.Call) Event {
	return newEvent("beforeSubAgent",
		agentloop.BeforeSubAgentPayload{Agent: agent, ToolCallID: call.ID, Input: call.Arguments},
		func(h *agentloop.Hooks) hook[agentloop.BeforeSubAgentPayload] { return h.BeforeSubAgent })
}

// BeforeLLMCall is the event before a model is called.
func BeforeLLMCall(p agentloop.BeforeLLMCallPayload) Event {
	return newEvent("beforeLLMCall", p,
		func(h *agentloop.Hooks) hook[agentloop.BeforeLLMCallPayload] { return h.BeforeLLMCall })
}
