package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab/lane"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// frozen answers the agents of one lane from the records.
type frozen struct {
	o    *Options
	base *lane.Recording // what was recorded
	// prior is the baseline's lane; nil: its requests are not known.
	prior *frozen
	spent *spent

	mu      sync.Mutex
	used    map[int]bool                 // recorded answers, by their index
	asked   map[string]map[string]string // parts of model requests that were made, by agent and key
	keys    lane.Keys
	latency time.Duration // of models
	cost    float64       // by the prices, of recorded answers and live ones
	live    bool          // models are asked even if their answers are recorded
}

func newFrozen(o *Options, base *lane.Recording, prior *frozen, s *spent) *frozen {
	return &frozen{o: o, base: base, prior: prior, spent: s, used: map[int]bool{}, asked: map[string]map[string]string{}}
}

// take returns the first recorded answer that fits and was not taken yet. One of the same session is
// better, since agents that work at the same time may ask the same; so is one of the same call.
func (f *frozen) take(agent, session, key, call string, fits func(lane.Found) bool) (found lane.Found, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	best, most := -1, -1
	for i, r := range f.base.Found {
		if r.Agent != agent || r.Key != key || f.used[i] || !fits(r) {
			continue
		}
		fit := 0
		if r.Session == session {
			fit += 2
		}
		if call != "" && r.CallID == call {
			fit++
		}
		if fit > most {
			best, most = i, fit
		}
	}
	if best < 0 {
		return lane.Found{}, false
	}
	f.used[best] = true
	return f.base.Found[best], true
}

// known is what the lane's agents have asked, and with which parts.
func (f *frozen) known(agent, key string) (map[string]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parts, ok := f.asked[agent+" "+key]
	if f.o.Baseline == nil {
		return nil, ok
	}
	return parts, ok
}

// agents returns the agents with everything frozen that they reach.
func (f *frozen) agents(agents []Agent) []agentloop.Agent {
	out := make([]agentloop.Agent, len(agents))
	for i, given := range agents {
		a := given.Agent
		a.Model = &frozenModel{f: f, agent: given}
		a.Hooks = nil
		a.MaxRetries = -1
		a.Tools = slices.Clone(a.Tools)
		if a.Workspace != nil {
			a.Tools = append(a.Tools, workspaceTools(*a.Workspace)...)
			a.Workspace = nil
		}
		for j := range a.Tools {
			if t := &a.Tools[j]; !t.Client {
				t.Execute = f.tool(a.Name, t.Name, t.Execute)
				t.Timeout = 0
			}
		}
		if a.Recall != nil {
			a.Recall = recaller{f}
		}
		a.RemoteAgents = slices.Clone(a.RemoteAgents)
		for j := range a.RemoteAgents {
			r := &a.RemoteAgents[j]
			r.Transport = &transport{f: f, agent: a.Name, tool: agentloop.SubAgentPrefix + r.Name, asked: map[string]string{}}
		}
		out[i] = a
	}
	return out
}

// workspaceTools are the tools of a workspace without the workspace.
func workspaceTools(w agentloop.Workspace) (tools []agentloop.Tool) {
	capabilities := w.Capabilities
	if capabilities == nil {
		capabilities = []fact.WorkspaceCapability{fact.WorkspaceFS}
	}
	for _, op := range workspace.Ops(capabilities) {
		if w.HostNetwork {
			op = op.OnHostNetwork()
		}
		t := agentloop.Tool{Name: projector.WorkspaceToolPrefix + op.Name, Description: op.Description, InputSchema: op.InputSchema}
		if slices.Contains(w.Approve, op.Name) {
			t.RequireApproval = agentloop.AlwaysApprove
		}
		tools = append(tools, t)
	}
	return tools
}

type execute func(context.Context, *agentloop.Call, json.RawMessage) (any, error)

// tool answers the calls of a tool.
func (f *frozen) tool(agent, name string, real execute) execute {
	return func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
		found, ok := f.take(agent, c.SessionID, lane.CallKey(name, args), c.ID, func(r lane.Found) bool { return r.Result != nil })
		if ok {
			return recorded(c, found.Result)
		}
		if f.o.Unmatched == SimulateCall {
			for _, s := range f.o.Simulate {
				if s.fits(name, args) && s.Error != "" {
					return nil, errors.New(s.Error)
				} else if s.fits(name, args) {
					return s.Result, nil
				}
			}
		}
		if f.o.Unmatched == Allow && real != nil && (slices.Contains(f.o.Safe, name) || slices.Contains(f.o.LiveTools, name)) {
			return real(ctx, c, args)
		}
		return nil, fmt.Errorf("%s: the call with the arguments %s was not recorded", lane.Unrecorded, lane.Arguments(args))
	}
}

// recorded does to the state what the call did, and returns its result.
func recorded(c *agentloop.Call, r *lane.Result) (any, error) {
	for _, p := range r.Patches {
		if err := c.Patch(p.Patches); err != nil {
			return nil, fmt.Errorf("%s: its change of the state does not apply: %w", lane.Unrecorded, err)
		}
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return r.Result, nil
}

type recaller struct{ f *frozen }

// Recall returns what the agent was reminded of by the same query. A query that was not recorded ends
// the lane: nothing would be an answer, too.
func (r recaller) Recall(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	found, ok := r.f.take(req.AgentType, req.SessionID, req.Query, "", func(f lane.Found) bool { return f.Recall != nil })
	if ok && found.Recall.Error != "" {
		return nil, errors.New(found.Recall.Error)
	}
	if !ok {
		return nil, fmt.Errorf("%s: what is remembered of %q was not recorded", lane.Unrecorded, req.Query)
	}
	return found.Recall.Memories, nil
}

// transport answers in place of another server.
type transport struct {
	f           *frozen
	agent, tool string
	mu          sync.Mutex
	asked       map[string]string // messages by session
}

func (t *transport) Start(_ context.Context, req remote.StartRequest) (remote.Started, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[req.SessionID] = req.Message
	return remote.Started{SessionID: req.SessionID, StreamID: req.SessionID, RunID: "recorded"}, nil
}

func (t *transport) Resume(_ context.Context, req remote.ResumeRequest) (remote.Started, error) {
	return remote.Started{SessionID: req.SessionID, StreamID: req.SessionID, RunID: "recorded"}, nil
}

func (t *transport) Stream(_ context.Context, session string, _ uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		t.mu.Lock()
		message := t.asked[session]
		t.mu.Unlock()
		found, ok := t.f.takeRemote(t.agent, session, lane.CallKey(t.tool, json.RawMessage(message)))
		switch {
		case !ok:
			yield(remote.ErrorEvent{Error: lane.Unrecorded + ": the call was not recorded"}, nil)
		case found.Result.Error != "":
			yield(remote.ErrorEvent{Error: found.Result.Error}, nil)
		default:
			yield(remote.EndEvent{Output: found.Result.Result}, nil)
		}
	}
}

// takeRemote takes the result of a call of a remote agent, whose session is named after the call.
func (f *frozen) takeRemote(agent, session, key string) (lane.Found, bool) {
	for _, r := range f.base.Found {
		if r.Result != nil && r.Agent == agent && r.Key == key && projector.ChildID(r.Session, projector.InfixRemote, r.CallID) == session {
			return f.take(agent, r.Session, key, r.CallID, func(r lane.Found) bool { return r.Result != nil })
		}
	}
	return f.take(agent, "", key, "", func(r lane.Found) bool { return r.Result != nil })
}

func (t *transport) Status(_ context.Context, session string) (remote.Status, error) {
	return remote.Status{SessionID: session, Status: remote.StatusRunning, IsExecuting: true, StreamID: session}, nil
}
func (*transport) Interrupt(context.Context, string, string) error { return nil }
func (*transport) Abort(context.Context, string, string) error     { return nil }

// changed says which parts of a request differ from those that were made before.
func changed(before, now map[string]string) (parts []string) {
	for _, name := range []string{result.PartPrompt, result.PartModel, result.PartTools, result.PartOutput} {
		if before[name] != now[name] {
			parts = append(parts, name)
		}
	}
	return parts
}
