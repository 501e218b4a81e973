package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// told collects the calls of hooks, in their order, as words.
type told struct {
	mu    sync.Mutex
	words []string
	more  chan struct{} // closed and replaced when there is a word more
}

func newTold() *told { return &told{more: make(chan struct{})} }

func (o *told) add(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.words = append(o.words, fmt.Sprintf(format, args...))
	close(o.more)
	o.more = make(chan struct{})
}

func (o *told) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.words)
}

// until waits for a word.
func (o *told) until(t *testing.T, word string) []string {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		o.mu.Lock()
		words, more := slices.Clone(o.words), o.more
		o.mu.Unlock()
		if slices.Contains(words, word) {
			return words
		}
		select {
		case <-more:
		case <-timeout:
			require.Fail(t, "never notified", "%s in %v", word, words)
		}
	}
}

// hooks tell all that there is to tell. who is put before each word.
func (o *told) hooks(who string) *agentloop.Hooks {
	type H = agentloop.HookContext
	say := func(h *H, format string, args ...any) {
		at := who
		if h.ParentSessionID != "" {
			at += "child: "
		}
		o.add(at+format, args...)
	}
	outcome := func(result json.RawMessage, code string) string {
		if code != "" {
			return code
		}
		return string(result)
	}
	return &agentloop.Hooks{
		OnAgentStart: func(_ context.Context, h *H, p agentloop.AgentStartPayload) {
			say(h, "start %s %q", p.Agent, p.Input[0].Content)
		},
		OnAgentComplete: func(_ context.Context, h *H, p agentloop.AgentCompletePayload) { say(h, "complete %s", p.Output) },
		OnAgentFail:     func(_ context.Context, h *H, p agentloop.AgentFailPayload) { say(h, "fail %s", p.Code) },
		OnAgentSuspended: func(_ context.Context, h *H, p agentloop.AgentSuspendedPayload) {
			say(h, "suspended %s %v", p.Reason, p.ToolCallIDs)
		},
		OnAgentResumed: func(_ context.Context, h *H, p agentloop.AgentResumedPayload) {
			say(h, "resumed %s %s", p.Reason, p.Mode)
		},
		BeforeLLMCall: func(_ context.Context, h *H, p agentloop.BeforeLLMCallPayload) {
			say(h, "beforeLLM %d.%d, %d messages", p.Step, p.Attempt, len(p.Request.Messages))
		},
		AfterLLMCall: func(_ context.Context, h *H, p agentloop.AfterLLMCallPayload) {
			if p.Error != nil {
				say(h, "afterLLM %d %s", p.Step, p.Error.Code)
				return
			}
			say(h, "afterLLM %d", p.Step)
		},
		BeforeTool: func(_ context.Context, h *H, p agentloop.BeforeToolPayload) {
			say(h, "beforeTool %s %s %s", p.Tool.Name, p.ToolCallID, p.Arguments)
		},
		AfterTool: func(_ context.Context, h *H, p agentloop.AfterToolPayload) {
			say(h, "afterTool %s %s", p.ToolCallID, outcome(p.Result, p.ErrorCode))
		},
		BeforeSubAgent: func(_ context.Context, h *H, p agentloop.BeforeSubAgentPayload) {
			say(h, "beforeSubAgent %s %s", p.Agent, p.Input)
		},
		AfterSubAgent: func(_ context.Context, h *H, p agentloop.AfterSubAgentPayload) {
			say(h, "afterSubAgent %s %s %s", p.Agent, p.SubSessionID, outcome(p.Result, p.ErrorCode))
		},
		OnStateChange: func(_ context.Context, h *H, p agentloop.StateChangePayload) {
			say(h, "state %s %s", p.ToolCallID, p.State)
		},
		OnMessage: func(_ context.Context, h *H, p agentloop.MessagePayload) {
			m := p.Message
			switch m.Role {
			case projector.RoleTool:
				say(h, "message tool %s %s", m.ToolCallID, outcome(m.Result, m.ErrorCode))
			default:
				say(h, "message %s %q", m.Role, m.Content)
			}
		},
	}
}

// tool is a step with one call.
func toolStep(name, id, args string) scripted.Turn {
	return scripted.Turn{ToolCalls: []scripted.Call{{ID: id, Name: name, Arguments: json.RawMessage(args)}}}
}

var done = scripted.Turn{Text: "ok"}

func TestHooksOfAToolCallComeInTheirOrder(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(toolStep("add", "c", `{"by":2}`), done), Hooks: o.hooks(""),
	})
	g.start("s", "a", "go")
	require.Equal(t, []string{
		`start a "go"`, `message user "go"`,
		`beforeLLM 1.1, 1 messages`, `afterLLM 1`, `message assistant ""`,
		`beforeTool add c {"by":2}`, `state c {"count":2}`, `message tool c 2`, `afterTool c 2`,
		`beforeLLM 2.1, 3 messages`, `afterLLM 2`, `message assistant "ok"`,
		`complete "ok"`,
	}, o.until(t, `complete "ok"`))
}

// chained returns tools that end in the reverse order of their calls.
func chained(o *told) []agentloop.Tool {
	second := make(chan struct{})
	run := func(name string, wait, end chan struct{}) agentloop.Tool {
		return agentloop.NewTool(name, "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
			if wait != nil {
				<-wait
			}
			if end != nil {
				// The other one may end when this one is recorded and its hook was
				// called.
				defer func() {
					go func() {
						o.wait("state " + c.ID)
						close(end)
					}()
				}()
			}
			return name, agentloop.UpdateState(c, func(s *counterState) error {
				s.Notes = append(s.Notes, name)
				return nil
			})
		})
	}
	return []agentloop.Tool{run("first", second, nil), run("second", nil, second)}
}

// wait waits for a word that begins so.
func (o *told) wait(prefix string) {
	for {
		o.mu.Lock()
		words, more := slices.Clone(o.words), o.more
		o.mu.Unlock()
		if slices.ContainsFunc(words, func(w string) bool { return len(w) >= len(prefix) && w[:len(prefix)] == prefix }) {
			return
		}
		<-more
	}
}

func TestHooksOfParallelCallsComeInTheModelsOrder(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: chained(o), Hooks: o.hooks(""),
		Model: script(scripted.Turn{ToolCalls: []scripted.Call{{ID: "c1", Name: "first"}, {ID: "c2", Name: "second"}}}, done),
	})
	g.start("s", "a", "go")
	words := o.until(t, `complete "ok"`)
	require.Equal(t, []string{
		`beforeTool first c1 {}`, `beforeTool second c2 {}`,
		`state c2 {"notes":["second"]}`, `state c1 {"notes":["second","first"]}`,
		`message tool c1 "first"`, `afterTool c1 "first"`, `message tool c2 "second"`, `afterTool c2 "second"`,
	}, words[5:13])
}

// approval is an agent whose tool must be approved.
func approval(o *told) agentloop.Agent {
	add := addTool()
	add.RequireApproval = agentloop.AlwaysApprove
	return agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{add}, Model: script(toolStep("add", "c", `{"by":2}`), done), Hooks: o.hooks(""),
	}
}

func TestHooksOfAnApproval(t *testing.T) {
	for approved, want := range map[bool][]string{
		true: {
			`beforeTool add c {"by":2}`, `state c {"count":2}`, `message tool c 2`, `afterTool c 2`,
		},
		false: {`message tool c approval_denied`, `afterTool c approval_denied`},
	} {
		t.Run(fmt.Sprint(approved), func(t *testing.T) {
			log, o := memory.New(), newTold()
			first := newRigOn(t, log, approval(o))
			first.start("s", "a", "go")
			require.Equal(t, []string{
				`start a "go"`, `message user "go"`, `beforeLLM 1.1, 1 messages`, `afterLLM 1`, `message assistant ""`,
				`suspended client_tool [c]`,
			}, o.until(t, `suspended client_tool [c]`))
			first.loop.Stop()

			o = newTold()
			second := newRigOn(t, log, approval(o))
			_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{
				SessionID: "s", Mode: fact.ModeWithConfirmation, Approved: approved,
			})
			require.NoError(t, err)
			require.Equal(t, slices.Concat(
				[]string{`resumed client_tool with_confirmation`}, want,
				[]string{`beforeLLM 2.1, 3 messages`, `afterLLM 2`, `message assistant "ok"`, `complete "ok"`},
			), o.until(t, `complete "ok"`))
		})
	}
}

func TestHooksOfAClientToolThatIsAnsweredOrTimesOut(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			log, o, clock := memory.New(), newTold(), newClock()
			agent := agentloop.Agent{
				Name: "a", Model: script(toolStep("ask", "c", `{}`), done), Hooks: o.hooks(""),
				Tools: []agentloop.Tool{{Name: "ask", Client: true, Timeout: time.Minute}},
			}
			g := clocked(t, log, clock, agent)
			g.start("s", "a", "go")
			o.until(t, `suspended client_tool [c]`)
			want := `"yes"`
			if late {
				clock.add(2 * time.Minute)
				want = agentloop.CodeClientToolTimeout
			}
			_, err := g.loop.Submit(t.Context(), engine.Submission{
				SessionID: "s", ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"yes"`),
			})
			require.NoError(t, err)
			_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(t, err)
			require.Equal(t, []string{
				`suspended client_tool [c]`, `resumed client_tool continue`, `message tool c ` + want, `afterTool c ` + want,
				`beforeLLM 2.1, 3 messages`, `afterLLM 2`, `message assistant "ok"`, `complete "ok"`,
			}, o.until(t, `complete "ok"`)[5:])
		})
	}
}

// bossAndHelper is an agent with a sub-agent, which answers by its finish tool.
func bossAndHelper(parent, child *agentloop.Hooks, childModel model.Model) []agentloop.Agent {
	return []agentloop.Agent{
		{
			Name: "boss", Model: script(toolStep("subagent__helper", "c", `{"message":"help"}`), done), Hooks: parent,
			SubAgents: []agentloop.SubAgent{{Agent: "helper"}},
		},
		{
			Name: "helper", Model: childModel, Hooks: child, Tools: []agentloop.Tool{{Name: "ask", Client: true}},
			OutputSchema: json.RawMessage(`{"type":"object"}`),
		},
	}
}

func TestAParentsHooksSeeItsSubAgents(t *testing.T) {
	o := newTold()
	g := newRig(t, bossAndHelper(o.hooks("boss "), o.hooks("helper "), script(toolStep("__finish__", "f", `{"x":1}`)))...)
	_, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "go"}},
		Hooks: &agentloop.Hooks{OnAgentStart: func(_ context.Context, h *agentloop.HookContext, p agentloop.AgentStartPayload) {
			o.add("request %s %s", p.Agent, h.StreamID)
		}},
	})
	require.NoError(t, err)
	words := o.until(t, `boss complete "ok"`)
	require.Equal(t, []string{
		`boss start boss "go"`, `request boss s`, `boss message user "go"`,
		`boss beforeLLM 1.1, 1 messages`, `boss afterLLM 1`, `boss message assistant ""`,
		`boss beforeSubAgent helper {"message":"help"}`,
		`boss child: start helper "help"`, `helper child: start helper "help"`, `request helper s`,
		`boss child: message user "help"`, `helper child: message user "help"`,
		`boss child: beforeLLM 1.1, 1 messages`, `helper child: beforeLLM 1.1, 1 messages`,
		`boss child: afterLLM 1`, `helper child: afterLLM 1`,
		`boss child: message assistant ""`, `helper child: message assistant ""`,
		`boss child: beforeTool __finish__ f {"x":1}`, `helper child: beforeTool __finish__ f {"x":1}`,
		`boss child: message tool f {"acknowledged":true}`, `helper child: message tool f {"acknowledged":true}`,
		`boss child: afterTool f {"acknowledged":true}`, `helper child: afterTool f {"acknowledged":true}`,
		`boss child: complete {"x":1}`, `helper child: complete {"x":1}`,
		`boss message tool c {"x":1}`, `boss afterSubAgent helper s-sub-c {"x":1}`,
		`boss beforeLLM 2.1, 3 messages`, `boss afterLLM 2`, `boss message assistant "ok"`, `boss complete "ok"`,
	}, words)
}

func TestHooksOfARunThatWaitsForASubAgent(t *testing.T) {
	o := newTold()
	g := newRig(t, bossAndHelper(o.hooks(""), nil, script(toolStep("ask", "q", `{}`), toolStep("__finish__", "f", `{}`)))...)
	g.start("s", "boss", "go")
	words := o.until(t, `suspended awaiting_children []`)
	require.Contains(t, words, `child: suspended client_tool [q]`)
	_, err := g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "q", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	words = o.until(t, `complete "ok"`)
	require.Contains(t, words, `resumed awaiting_children continue`)
	require.Contains(t, words, `child: resumed client_tool continue`)
}

func TestHooksOfAFailure(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{Name: "a", Hooks: o.hooks(""), MaxRetries: 1, Model: modelFunc(
		func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) {
			return model.Answer{}, &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}
		})})
	g.start("s", "a", "go")
	require.Equal(t, []string{
		`beforeLLM 1.1, 1 messages`, `afterLLM 1 provider_overloaded`,
		`beforeLLM 1.2, 1 messages`, `afterLLM 1 provider_overloaded`, `fail provider_overloaded`,
	}, o.until(t, `fail provider_overloaded`)[2:])
}

func TestHooksOfAnAbort(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{
		Name: "a", Model: script(toolStep("ask", "c", `{}`), done), Hooks: o.hooks(""),
		Tools: []agentloop.Tool{{Name: "ask", Client: true}},
	})
	g.start("s", "a", "go")
	o.until(t, `suspended client_tool [c]`)
	require.NoError(t, g.loop.Abort(t.Context(), "s", "enough"))
	require.Equal(t, []string{`message tool c aborted`, `afterTool c aborted`, `fail aborted`}, o.until(t, `fail aborted`)[6:])
}

func TestAnInterruptedRunIsSuspended(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{Name: "a", Hooks: o.hooks(""), Model: hanging{}})
	g.start("s", "a", "go")
	o.until(t, `beforeLLM 1.1, 1 messages`)
	require.NoError(t, g.loop.Interrupt(t.Context(), "s", "wait"))
	require.Equal(t, `suspended interrupted []`, o.until(t, `suspended interrupted []`)[3])
}

func TestAHookThatMisbehavesIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTold()
		hooks := o.hooks("")
		hooks.AfterTool = func(context.Context, *agentloop.HookContext, agentloop.AfterToolPayload) { panic("x") }
		late := make(chan error, 1)
		release := make(chan struct{})
		hooks.BeforeTool = func(ctx context.Context, h *agentloop.HookContext, _ agentloop.BeforeToolPayload) {
			<-release // whatever ctx says
			late <- h.EmitCustom("late", 1)
		}
		begin := time.Now()
		g := newRig(t, agentloop.Agent{
			Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(toolStep("add", "c", `{"by":2}`), done), Hooks: hooks,
		})
		g.start("s", "a", "go")
		o.until2(`complete "ok"`)
		require.Less(t, time.Since(begin), agentloop.MaxHookTime+2*time.Second)
		close(release)
		require.Error(t, <-late, "a hook that was left alone writes nothing")
		require.NotContains(t, g.types("s"), "custom")
		g.loop.Stop()
	})
}

// until2 waits for a word in a bubble, whose clock is its own.
func (o *told) until2(word string) { o.wait(word) }

func TestAnAbortCutsAHookOff(t *testing.T) {
	o, inside := newTold(), make(chan struct{})
	hooks := o.hooks("")
	hooks.BeforeTool = func(ctx context.Context, _ *agentloop.HookContext, _ agentloop.BeforeToolPayload) {
		close(inside)
		<-ctx.Done()
	}
	g := newRig(t, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(toolStep("add", "c", `{"by":2}`), done), Hooks: hooks,
	})
	g.start("s", "a", "go")
	<-inside
	require.NoError(t, g.loop.Abort(t.Context(), "s", "enough"))
	o.until(t, `fail aborted`)
}
