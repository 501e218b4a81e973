package textstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
)

// story is a turn that agents really have had.
type story struct {
	name   string
	agents []agentloop.Agent // the first one is talked to
	before string            // a message of an earlier turn
	// then is what a person does whenever the run has ended, one after the
	// other; see play.
	then []func(*player)
}

// player plays a story.
type player struct {
	*testing.T
	loop *engine.Loop
	log  eventlog.Log
	run  *engine.Handle
}

func (p *player) submit(s engine.Submission) {
	s.SessionID = root
	_, err := p.loop.Submit(p.Context(), s)
	require.NoError(p, err)
	p.resume()
}

func (p *player) resume() {
	run, err := p.run.Resume(p.Context(), engine.ResumeRequest{})
	require.NoError(p, err)
	p.run = run
}

func (p *player) say(text string) {
	run, err := p.loop.Execute(p.Context(), engine.StartRequest{
		SessionID: root, AgentType: "boss", Messages: []agentloop.Input{{Content: text}},
	})
	require.NoError(p, err)
	p.run = run
}

func (p *player) rest() {
	ctx, cancel := context.WithTimeout(p.Context(), 2*time.Minute)
	defer cancel()
	_, err := p.run.Result(ctx)
	require.NoError(p, err)
}

// play returns the log of a story and where its last turn begins.
func (s story) play(t *testing.T) (all []eventlog.Record, from uint64) {
	log := memory.New()
	loop, err := engine.New(log, s.agents, &engine.Options{RetryDelay: time.Millisecond})
	require.NoError(t, err)
	defer loop.Stop()
	p := &player{T: t, loop: loop, log: log}
	if s.before != "" {
		p.say(s.before)
		p.rest()
		from, err = log.Head(t.Context(), root)
		require.NoError(t, err)
	}
	p.say("Go")
	for _, then := range s.then {
		p.rest()
		then(p)
	}
	p.rest()
	return logtest.Records(t, log, root), from
}

func says(turns ...scripted.Turn) model.Model { return scripted.New(turns, nil) }

// calls is a turn that calls a tool, with arguments of several pieces.
func calls(id, name, args string) scripted.Turn {
	return scripted.Turn{ToolCalls: []scripted.Call{{ID: id, Name: name, Arguments: raw(args)}}}
}

var spent = fact.TokenUsage{Prompt: 20, Completion: 5}

// echo says its arguments.
var echo = agentloop.Tool{Name: "echo", Execute: func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) {
	return args, nil
}}

var fails = agentloop.Tool{Name: "fails", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
	return nil, errors.New("no luck")
}}

func deploy() agentloop.Tool {
	t := echo
	t.Name, t.RequireApproval = "deploy", agentloop.AlwaysApprove
	return t
}

// flaky fails after half a sentence of its second answer, twice.
type flaky struct{ tries int }

func (f *flaky) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	turns := []scripted.Turn{calls("c", "echo", `{"x": 1}`), {Reasoning: "Once more, then.", Text: "A whole answer."}}
	if n := len(req.Messages); req.Messages[n-1].Role == model.RoleTool && f.tries < 2 {
		f.tries++
		turns[1] = scripted.Turn{Reasoning: "Hm, so", Text: "Half an", ToolCalls: calls("d", "echo", `{"x": 2}`).ToolCalls,
			Err: &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}}
	}
	return scripted.New(turns, nil).Generate(ctx, req, emit)
}

const answer = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`

var approve = engine.Submission{ToolCallID: "c", Kind: fact.SubmitApproval, Approved: true}

func answered(s engine.Submission) func(*player) { return func(p *player) { p.submit(s) } }

// stories are created for each test, since models may have a state.
func stories() []story {
	helper := agentloop.Agent{
		Name: "helper", OutputSchema: raw(answer), SubAgents: []agentloop.SubAgent{{Agent: "scout"}}, Tools: []agentloop.Tool{deploy()},
		Model: says(
			scripted.Turn{Reasoning: "Let me ask.", Text: "I ask.", Usage: spent, ToolCalls: append(
				calls("g", "subagent__scout", `{"message": "Look"}`).ToolCalls, calls("c", "deploy", `{"to": "prod"}`).ToolCalls...)},
			calls("f", agentloop.FinishTool, `{"answer": "found it"}`)),
	}
	scout := agentloop.Agent{Name: "scout", OutputSchema: raw(answer), Model: says(scripted.Turn{
		Text: "I see it there.", Usage: spent, ToolCalls: calls("h", agentloop.FinishTool, `{"answer": "there"}`).ToolCalls,
	})}
	boss := func(m model.Model, tools ...agentloop.Tool) []agentloop.Agent {
		return []agentloop.Agent{{Name: "boss", Model: m, Tools: tools, MaxRetries: 3}}
	}
	return []story{
		{name: "text", agents: boss(says(scripted.Turn{Text: "All is well, so far.", Usage: spent}))},
		{name: "a second turn", agents: boss(says(scripted.Turn{Text: "All is well."})), before: "Hi"},
		{name: "reasoning", agents: boss(says(
			scripted.Turn{Reasoning: "What is it, then?", Text: "Let me see.", ToolCalls: calls("c", "echo", `{"x": 1, "y": 2}`).ToolCalls},
			scripted.Turn{Reasoning: "I have it.", Text: "It is this."}), echo)},
		{name: "tools side by side", agents: boss(says(
			scripted.Turn{ToolCalls: []scripted.Call{
				{ID: "c", Name: "echo", Arguments: raw(`{"x": 1}`)}, {ID: "d", Name: "fails"},
				{ID: "e", Name: "nobody", Arguments: raw(`{"x": 3}`)}, {ID: "f", Name: "echo", Arguments: raw(`{"x": 4`)},
			}, Usage: spent},
			scripted.Turn{Text: "That is all.", StopReason: fact.StopMaxTokens}), echo, fails)},
		{name: "approved", agents: boss(says(calls("c", "deploy", `{"to": "prod"}`), scripted.Turn{Text: "Deployed, at last."}), deploy()),
			then: []func(*player){answered(approve)}},
		{name: "denied", agents: boss(says(calls("c", "deploy", `{"to": "moon"}`), scripted.Turn{Text: "Then not, my friend."}), deploy()),
			then: []func(*player){answered(engine.Submission{ToolCallID: "c", Kind: fact.SubmitApproval, Reason: "too far"})}},
		{name: "client tool", agents: boss(says(
			scripted.Turn{Text: "Let me ask.", ToolCalls: calls("c", "ask", `{"q": "where"}`).ToolCalls}, scripted.Turn{Text: "Rome is nice."}),
			agentloop.Tool{Name: "ask", Client: true}),
			then: []func(*player){
				func(p *player) { p.resume() }, // nobody has answered
				answered(engine.Submission{ToolCallID: "c", Kind: fact.SubmitClientResult, Result: raw(`{"city":"Rome"}`)}),
			}},
		{name: "sub-agents, and one of them waits", agents: append(
			[]agentloop.Agent{{Name: "boss", SubAgents: []agentloop.SubAgent{{Agent: "helper"}}, Tools: []agentloop.Tool{echo}, Model: says(
				scripted.Turn{Text: "I hand it on.", Usage: spent, ToolCalls: append(
					calls("a", "subagent__helper", `{"message": "Find it"}`).ToolCalls, calls("b", "echo", `{"x": 1}`).ToolCalls...)},
				scripted.Turn{Text: "It is found, and well."})}}, helper, scout),
			then: []func(*player){answered(approve)}},
		{name: "a sub-agent of an earlier turn", before: "Hi", agents: []agentloop.Agent{
			{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "coder", Mode: agentloop.Blocking}},
				Model: turnwise{
					says(calls("a", "companion__spawnAgent", `{"agent": "coder", "name": "ada", "initialMessage": "Write"}`),
						scripted.Turn{Text: "Written."}),
					says(calls("b", "companion__sendMessage", `{"name": "ada", "message": "Write more"}`), scripted.Turn{Text: "Much is written."}),
				}},
			{Name: "coder", Model: says(scripted.Turn{Reasoning: "What shall I write?", Text: "Some lines of code."})},
		}},
		{name: "attempts that fail", agents: boss(&flaky{}, echo)},
		{name: "error", agents: boss(says(scripted.Turn{Text: "So I", Err: &model.Error{Code: model.CodeInvalidRequest, Message: "what?"}}))},
		{name: "abort while it waits", agents: boss(says(calls("c", "deploy", `{"to": "prod"}`)), deploy()),
			then: []func(*player){func(p *player) { require.NoError(p, p.run.Abort(p.Context(), "enough")) }}},
	}
}

// turnwise is a model that says other things in each turn.
type turnwise []model.Model

func (m turnwise) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	n := -1
	for _, message := range req.Messages {
		if message.Role == model.RoleUser {
			n++
		}
	}
	return m[n].Generate(ctx, req, emit)
}
