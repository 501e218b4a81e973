package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// household is a tree of agents that do everything that a loop can: think, speak,
// change the state in parallel, wait for a person, hand tasks on. It counts
// what one process does.
type household struct {
	// interrupt is what the boss's fifth answer does in the middle, once;
	// interrupted outlives the process.
	interrupt   func(context.Context) error
	interrupted *atomic.Bool
	// pace, if set, wraps each model.
	pace func(model.Model) model.Model

	mu       sync.Mutex
	asked    map[turnOf]int             // model calls
	recalled map[string]int             // by session and what it was asked with
	executed map[string]int             // completed executions by call
	keys     map[string]map[string]bool // idempotency keys by call
}

// turnOf is a model call: the n-th answer, from 0, of an agent that has one
// session only.
type turnOf struct {
	agent string
	n     int
}

func newHousehold(interrupted *atomic.Bool) *household {
	return &household{
		interrupted: interrupted,
		asked:       map[turnOf]int{}, recalled: map[string]int{}, executed: map[string]int{}, keys: map[string]map[string]bool{},
	}
}

// boss, its ephemeral sub-agents clerk and scout, its persistent ones helper
// (blocking) and runner (non-blocking).
func (h *household) agents() []agentloop.Agent {
	output := json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}}}`)
	note, pay := h.tool("note"), h.tool("pay")
	pay.RequireApproval = agentloop.AlwaysApprove
	ask := agentloop.Tool{Name: "ask", Client: true}
	return []agentloop.Agent{
		{
			Name: "boss", Recall: h.memory("boss"), OutputSchema: output, Tools: []agentloop.Tool{note, pay, ask},
			SubAgents: []agentloop.SubAgent{{Agent: "clerk"}, {Agent: "scout"}},
			PersistentAgents: []agentloop.PersistentAgent{
				{Agent: "helper", Mode: agentloop.Blocking}, {Agent: "runner", Mode: agentloop.NonBlocking},
			},
			Approvals: []agentloop.Approval{{Tools: "subagent__scout"}, {Tools: "companion__spawn*", Require: spawnsRunner}},
			Model: h.model("boss",
				scripted.Turn{
					Reasoning: "First I think.", Text: "Two notes.", Usage: fact.TokenUsage{Prompt: 10, Completion: 3},
					ToolCalls: calls("n1", "note", `{"text":"a b c"}`, "n2", "note", `{"text":"d"}`),
				},
				scripted.Turn{Text: "Now all at once.", ToolCalls: calls(
					"p1", "pay", `{}`, "p2", "pay", `{}`, "c1", "ask", `{"what":"name"}`,
					"s1", "subagent__clerk", `{"message":"file it"}`, "s2", "subagent__scout", `{"message":"look"}`,
				)},
				scripted.Turn{ToolCalls: calls(
					"b1", "companion__spawnAgent", `{"agent":"helper","name":"h","initialMessage":"help"}`,
					"b2", "companion__spawnAgent", `{"agent":"runner","name":"r","initialMessage":"run"}`,
				)},
				scripted.Turn{Text: "More.", ToolCalls: calls("b3", "companion__sendMessage", `{"name":"h","message":"more"}`)},
				scripted.Turn{Text: "Almost done.", ToolCalls: calls("f1", "__finish__", `{"sum":6}`)},
				scripted.Turn{Text: "Still done.", ToolCalls: calls("f2", "__finish__", `{"sum":7}`)},
			),
		},
		{Name: "clerk", OutputSchema: output, Tools: []agentloop.Tool{ask}, Model: h.model("clerk",
			scripted.Turn{Text: "Which file?", ToolCalls: calls("c2", "ask", `{"what":"file"}`)},
			scripted.Turn{ToolCalls: calls("f3", "__finish__", `{"sum":1}`)},
		)},
		{Name: "scout", Recall: h.memory("scout"), OutputSchema: output, Tools: []agentloop.Tool{note}, Model: h.model("scout",
			scripted.Turn{Reasoning: "Where to look?", ToolCalls: calls("n3", "note", `{"text":"seen"}`)},
			scripted.Turn{ToolCalls: calls("f4", "__finish__", `{"sum":2}`)},
		)},
		{Name: "helper", Recall: h.memory("helper"), Tools: []agentloop.Tool{note}, Model: h.model("helper",
			scripted.Turn{ToolCalls: calls("n4", "note", `{"text":"e"}`)},
			scripted.Turn{Text: "Helped once."},
			scripted.Turn{Text: "Helped twice."},
		)},
		{Name: "runner", Tools: []agentloop.Tool{ask}, Model: h.model("runner",
			scripted.Turn{Text: "Where to?", ToolCalls: calls("c3", "ask", `{"what":"way"}`)},
			scripted.Turn{Text: "I have run all the way."},
		)},
	}
}

// spawnsRunner has a person approve that the runner is started.
func spawnsRunner(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
	var in struct{ Agent string }
	err := json.Unmarshal(args, &in)
	return in.Agent == "runner", err
}

// calls are tool calls: id, tool and arguments of each.
func calls(words ...string) []scripted.Call {
	var all []scripted.Call
	for ; len(words) > 0; words = words[3:] {
		all = append(all, scripted.Call{ID: words[0], Name: words[1], Arguments: json.RawMessage(words[2])})
	}
	return all
}

// tool emits events and changes the state.
func (h *household) tool(name string) agentloop.Tool {
	return agentloop.Tool{Name: name, Execute: func(ctx context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
		h.mu.Lock()
		if h.keys[c.ID] == nil {
			h.keys[c.ID] = map[string]bool{}
		}
		h.keys[c.ID][c.IdempotencyKey] = true
		h.mu.Unlock()
		for i := range 2 {
			if err := c.Emit(ctx, "progress", i); err != nil {
				return nil, err
			}
			err := agentloop.UpdateState(c, func(s *counterState) error {
				s.Count++
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.executed[c.ID]++
		return "did " + name, nil
	}}
}

// memory reminds an agent of what it has saved.
func (h *household) memory(agent string) agentloop.Recaller {
	return recallFunc(func(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.recalled[req.SessionID+" "+req.Query]++
		return []fact.RecalledMemory{{MemoryID: agent + " of " + req.Query, Content: "It was done before."}}, nil
	})
}

// model says the turn whose number is that of the answers before, whatever was
// said in between.
func (h *household) model(agent string, turns ...scripted.Turn) model.Model {
	says := script(turns...)
	if h.pace != nil {
		says = h.pace(says)
	}
	return modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		var answers []model.Message
		for _, m := range req.Messages {
			if m.Role == model.RoleAssistant {
				answers = append(answers, m)
			}
		}
		h.mu.Lock()
		h.asked[turnOf{agent, len(answers)}]++
		h.mu.Unlock()
		if agent == "boss" && len(answers) == 4 && h.interrupted.CompareAndSwap(false, true) {
			if err := emit(model.TextDelta{Text: "Almost "}); err != nil {
				return model.Answer{}, err
			}
			if err := h.interrupt(ctx); err != nil {
				return model.Answer{}, err
			}
			<-ctx.Done()
			return model.Answer{}, errors.New("interrupted")
		}
		return says.Generate(ctx, model.Request{Messages: answers}, emit)
	})
}
