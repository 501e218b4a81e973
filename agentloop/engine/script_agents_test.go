package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// scriptAgent is an agent of a script.
type scriptAgent struct {
	Name       string       `yaml:"name"`
	Says       []scriptTurn `yaml:"says"` // its n-th answer in a conversation, the last one again and again
	Tools      []string     `yaml:"tools"`
	Output     bool         `yaml:"output"` // it must give {"answer": string}
	SubAgents  []string     `yaml:"subAgents"`
	Timeout    string       `yaml:"timeout"` // of its sub-agents' calls
	Persistent []struct {
		Agent string                   `yaml:"agent"`
		Mode  agentloop.PersistentMode `yaml:"mode"`
	} `yaml:"persistent"`
	// Remembers are memories by id: it is reminded of those that share a word
	// with what the user says, and fails to be where one says so.
	Remembers map[string]string `yaml:"remembers"`
	Workspace *struct {
		Capabilities []fact.WorkspaceCapability `yaml:"capabilities"`
		Approve      []string                   `yaml:"approve"`
	} `yaml:"workspace"` // on the stage's shelf
	// Approvals are names and patterns of tools whose calls a person must approve.
	Approvals  []string `yaml:"approvals"`
	MaxSteps   int      `yaml:"maxSteps"`
	MaxRetries int      `yaml:"maxRetries"`
	State      string   `yaml:"state"`
}

// scriptTurn is one answer of a model.
type scriptTurn struct {
	Thinking string          `yaml:"thinking"`
	Text     string          `yaml:"text"`
	Calls    []scripted.Call `yaml:"calls"`
	Hold     string          `yaml:"hold"` // what it waits for when the text is said
	Error    *struct {
		Code      string `yaml:"code"`
		Message   string `yaml:"message"`
		Retryable bool   `yaml:"retryable"`
	} `yaml:"error"` // in place of the answer's end
	// Tries are the answers of the first, second, ... attempt, the last one
	// again and again.
	Tries []scriptTurn `yaml:"tries"`
}

// stage is what agents and scripts share beyond the lives of their processes.
type stage struct {
	mu       sync.Mutex
	gates    map[string]chan struct{}
	attempts map[string]int // model calls by agent and answer
	executed map[string]int // tool executions by tool
	shelf    *shelf
}

// gate is open once somebody has released it.
func (g *stage) gate(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates[name] == nil {
		g.gates[name] = make(chan struct{})
	}
	return g.gates[name]
}

func (g *stage) count(counts map[string]int, what string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts[what]++
	return counts[what]
}

// actor is the model of an agent: what it says follows from how many answers
// the conversation has.
type actor struct {
	*stage
	agent scriptAgent
}

func (a actor) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	n := 0
	for _, m := range req.Messages {
		if m.Role == model.RoleAssistant {
			n++
		}
	}
	turn := a.agent.Says[min(n, len(a.agent.Says)-1)]
	if tries := turn.Tries; tries != nil {
		attempt := a.count(a.attempts, fmt.Sprint(a.agent.Name, n))
		turn = tries[min(attempt, len(tries))-1]
	}
	said := scripted.Turn{Reasoning: turn.Thinking, Text: turn.Text, ToolCalls: turn.Calls}
	if turn.Error != nil {
		said.Err = &model.Error{Code: turn.Error.Code, Message: turn.Error.Message, Retryable: turn.Error.Retryable}
	}
	if turn.Hold != "" {
		if err := emit(model.TextDelta{Text: turn.Text}); err != nil {
			return model.Answer{}, err
		}
		select {
		case <-a.gate(turn.Hold):
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		said = scripted.Turn{ToolCalls: turn.Calls}
	}
	return scripted.New([]scripted.Turn{said}, nil).Generate(ctx, req, emit)
}

// memories are a recaller.
type memories struct {
	*stage
	agent scriptAgent
}

func (m memories) Recall(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	m.count(m.executed, "recall")
	var found []fact.RecalledMemory
	for _, id := range slices.Sorted(maps.Keys(m.agent.Remembers)) {
		content := m.agent.Remembers[id]
		if slices.ContainsFunc(strings.Fields(req.Query), func(word string) bool { return strings.Contains(content, word) }) {
			found = append(found, fact.RecalledMemory{MemoryID: id, Content: content, Score: 1})
		}
	}
	if strings.Contains(req.Query, "amnesia") {
		return found, errors.New("the memory is gone")
	}
	return found, nil
}

// tools are those that the agents of scripts may have.
func (g *stage) tools() map[string]agentloop.Tool {
	type run = func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error)
	echo := func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil }
	tool := func(execute run) agentloop.Tool { return agentloop.Tool{Execute: execute} }

	slow := tool(func(ctx context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
		select {
		case <-g.gate(c.ID):
			return "at last", nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	quick := slow
	quick.Timeout = 5 * time.Millisecond
	add := tool(func(_ context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
		var in struct{ By int }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		var sum int
		return &sum, agentloop.UpdateState(c, func(s *counterState) error {
			s.Count += in.By
			sum = s.Count
			return nil
		})
	})
	finish := tool(echo)
	finish.FinishWith = true
	approved := tool(echo)
	approved.RequireApproval = agentloop.AlwaysApprove
	spend := tool(echo)
	spend.RequireApproval = func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
		var in struct{ Amount int }
		err := json.Unmarshal(args, &in)
		return in.Amount > 100, err
	}
	broken := tool(echo)
	broken.RequireApproval = func(context.Context, *agentloop.Call, json.RawMessage) (bool, error) {
		return false, errors.New("the gate is broken")
	}
	panics := tool(echo)
	panics.RequireApproval = func(context.Context, *agentloop.Call, json.RawMessage) (bool, error) { panic("the gate fell down") }

	tools := map[string]agentloop.Tool{
		"echo":  tool(echo),
		"add":   add,  // changes the custom state
		"slow":  slow, // until its call is released
		"quick": quick,
		"fail": tool(func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
			return nil, errors.New("no luck")
		}),
		"done":   finish,
		"deploy": approved,
		"spend":  spend, // asks for more than 100
		"broken": broken,
		"panics": panics,
		"ask":    {Client: true},
		"typed": {Client: true, InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		"soon": {Client: true, Timeout: time.Minute},
	}
	for name, t := range tools {
		t.Name = name
		if execute := t.Execute; execute != nil {
			t.Execute = func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
				g.count(g.executed, name)
				return execute(ctx, c, args)
			}
		}
		tools[name] = t
	}
	return tools
}

// agent makes an agent of what a script says.
func (g *stage) agent(a scriptAgent) (agentloop.Agent, error) {
	out := agentloop.Agent{
		Name: a.Name, Model: actor{stage: g, agent: a}, MaxSteps: a.MaxSteps, MaxRetries: a.MaxRetries,
	}
	if a.Remembers != nil {
		out.Recall = memories{stage: g, agent: a}
	}
	if a.State != "" {
		out.InitialState = json.RawMessage(a.State)
	}
	if a.Output {
		out.OutputSchema = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
	}
	if w := a.Workspace; w != nil {
		out.Workspace = &agentloop.Workspace{Provider: g.shelf.id, Capabilities: w.Capabilities, Approve: w.Approve}
	}
	all := g.tools()
	for _, name := range a.Tools {
		t, ok := all[name]
		if !ok {
			return out, fmt.Errorf("scripts have no tool %q", name)
		}
		out.Tools = append(out.Tools, t)
	}
	for _, tools := range a.Approvals {
		out.Approvals = append(out.Approvals, agentloop.Approval{Tools: tools})
	}
	var timeout time.Duration
	if a.Timeout != "" {
		var err error
		if timeout, err = time.ParseDuration(a.Timeout); err != nil {
			return out, err
		}
	}
	for _, sub := range a.SubAgents {
		out.SubAgents = append(out.SubAgents, agentloop.SubAgent{Agent: sub, Timeout: timeout})
	}
	for _, p := range a.Persistent {
		out.PersistentAgents = append(out.PersistentAgents, agentloop.PersistentAgent{Agent: p.Agent, Mode: p.Mode})
	}
	return out, nil
}
