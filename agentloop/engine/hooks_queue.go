package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// hookQueue holds what hooks are still to be told. It is filled while records
// are folded, and emptied outside of all locks by callHooks, one a session.
// The runner's lock guards it.
type hookQueue struct {
	due map[string][]hookEvent // by session
	// results are those of calls that run beside others, by session; they
	// become due together.
	results map[string][]hookResult
	began   map[string]int64         // when a call or a model call began, ms; by call id or effect key
	told    map[string]bool          // companion calls whose beginning was told, by effect key
	turns   map[string]chan struct{} // by session: full while a hook is being called
}

// hookResult is a call's result, of which hooks hear in the model's order.
type hookResult struct {
	index  int // among the step's calls
	events []hookEvent
}

func newHookQueue() hookQueue {
	return hookQueue{
		due: map[string][]hookEvent{}, results: map[string][]hookResult{}, began: map[string]int64{},
		told: map[string]bool{}, turns: map[string]chan struct{}{},
	}
}

// callHooks tells what is due, and what becomes due meanwhile.
func (t *task) callHooks(ctx context.Context) error {
	for ctx.Err() == nil {
		ev, ok := t.nextDue()
		if !ok {
			return nil
		}
		t.fire(ctx, ev)
	}
	return context.Cause(ctx)
}

func (t *task) nextDue() (ev hookEvent, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := t.hooks.due[t.session]
	if len(due) == 0 {
		delete(t.hooks.due, t.session)
		return ev, false
	}
	t.hooks.due[t.session] = due[1:]
	return due[0], true
}

// withHooks has a session's hooks called before anything new is done for it,
// and those of a sub-agent's end before its caller goes on. What is under way
// goes on. An abort does not wait: it cuts hooks off, as it does everything,
// and what is due then comes behind it. The caller holds the state.
func (r *runner) withHooks(effects []decide.Effect) []decide.Effect {
	var out []decide.Effect
	for _, s := range r.tree.Sessions() {
		mine := slices.DeleteFunc(slices.Clone(effects), func(e decide.Effect) bool { return e.About() != s.SessionID })
		r.release(s, mine)
		r.announceCompanion(s, mine)
		hooks := decide.CallHooks{Session: s.SessionID}
		own := r.telling(s)
		aborting := s.Turn != nil && s.Turn.Stop != nil && s.Turn.Stop.Kind == eventlog.StopAbort
		if r.tasks[hooks.Key()] == nil && (aborting || !own && !r.childTelling(s)) {
			out = append(out, mine...)
			continue
		}
		for _, e := range mine {
			if e.Key() != "" && r.tasks[e.Key()] != nil {
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
func (r *runner) telling(s *projector.Session) bool {
	return len(r.hooks.due[s.SessionID]) > 0 || r.tasks[decide.CallHooks{Session: s.SessionID}.Key()] != nil
}

// childTelling is telling for sub-agents that have stopped and that a call of
// the session waits for.
func (r *runner) childTelling(s *projector.Session) bool {
	return slices.ContainsFunc(r.tree.ChildrenOf(s.SessionID), func(child *projector.Session) bool {
		return !child.Running() && decide.Awaits(s, child.SessionID) && r.telling(child)
	})
}

// release makes the results of calls due that ran beside each other: when the
// last of them is over, or the session stops with some still waiting.
func (r *runner) release(s *projector.Session, wanted []decide.Effect) {
	if len(r.hooks.results[s.SessionID]) == 0 {
		return
	}
	for _, e := range wanted {
		switch e.(type) {
		case decide.CommitStep, decide.Suspend, decide.Interrupt, decide.Finish, decide.Fail:
			r.releaseAll(s.SessionID)
			return
		}
	}
	def := r.defs[s.AgentType]
	if s.Turn != nil && s.Turn.Step != nil && def != nil {
		for _, c := range s.Turn.Step.Pending() {
			if def.Phase(c.Name) == plan.PhaseOrdinary {
				return
			}
		}
	}
	r.releaseAll(s.SessionID)
}

func (r *runner) releaseAll(session string) {
	results := r.hooks.results[session]
	slices.SortStableFunc(results, func(a, b hookResult) int { return a.index - b.index })
	for _, one := range results {
		r.hooks.due[session] = append(r.hooks.due[session], one.events...)
	}
	delete(r.hooks.results, session)
}

// announceCompanion tells of a companion tool before the driver executes it.
func (r *runner) announceCompanion(s *projector.Session, wanted []decide.Effect) {
	for _, e := range wanted {
		run, ok := e.(decide.RunCompanion)
		name := decide.CallKey(s.SessionID, run.Call.ID)
		if !ok || r.hooks.told[name] {
			continue
		}
		r.hooks.told[name] = true
		def := r.defs[s.AgentType]
		if schema, ok := def.ArgumentsOf(run.Call.Name); ok && plan.CheckArguments(schema, run.Call.Arguments) == nil {
			r.due(s, beforeTool(run.Call.Name, run.Call.ID, run.Call.Arguments))
		}
	}
}

// due queues events for a session's hooks.
func (r *runner) due(s *projector.Session, events ...hookEvent) {
	r.hooks.due[s.SessionID] = append(r.hooks.due[s.SessionID], r.wanted(s, events)...)
}

// wanted keeps the events that a session's hooks want to know of.
func (r *runner) wanted(s *projector.Session, events []hookEvent) []hookEvent {
	hooks := r.hooksOf(s)
	var out []hookEvent
	for _, ev := range events {
		if ev, told := ev.told(hooks); told {
			out = append(out, ev)
		}
	}
	return out
}

func beforeTool(tool, call string, args json.RawMessage) hookEvent {
	return newHookEvent("beforeTool", agentloop.BeforeToolPayload{Tool: agentloop.HookTool{Name: tool}, ToolCallID: call, Arguments: args},
		func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.BeforeToolPayload) {
			return h.BeforeTool
		})
}
