package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// those returns the words that begin with one of the prefixes.
func those(words []string, prefixes ...string) []string {
	var out []string
	for _, w := range words {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(w, p) }) {
			out = append(out, w)
		}
	}
	return out
}

func TestHooksOfARequestGoWithItsRun(t *testing.T) {
	agents := bossAndHelper(nil, nil, script(toolStep("ask", "q", `{}`), toolStep("__finish__", "f", `{}`)))
	g := newRig(t, agents...)
	first, second := newTold(), newTold()
	_, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "go"}}, Hooks: first.hooks(""),
	})
	require.NoError(t, err)
	before := first.until(t, `suspended awaiting_children []`)
	_, err = g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "q", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Hooks: second.hooks("")})
	require.NoError(t, err)
	words := second.until(t, `complete "ok"`)
	require.Contains(t, words, `resumed awaiting_children continue`)
	require.Contains(t, words, `child: resumed client_tool continue`)
	require.Equal(t, before, first.all(), "the first run is finished")
}

func TestHooksOfCompanionTools(t *testing.T) {
	o := newTold()
	g := newRig(t,
		agentloop.Agent{
			Name: "boss", Hooks: o.hooks(""),
			PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: agentloop.Blocking}},
			Model: script(
				toolStep("companion__spawnAgent", "c", `{"agent":"helper","name":"h","initialMessage":"hi"}`),
				toolStep("companion__spawnAgent", "bad", `{}`), done),
		},
		agentloop.Agent{Name: "helper", Model: script(scripted.Turn{Text: "hello"})},
	)
	g.start("s", "boss", "go")
	words := those(o.until(t, `complete "ok"`), "beforeTool", "afterTool", "child: start", "child: complete")
	require.Len(t, words, 5)
	require.Equal(t, `beforeTool companion__spawnAgent c {"agent":"helper","name":"h","initialMessage":"hi"}`, words[0])
	require.Equal(t, []string{`child: start helper "hi"`, `child: complete "hello"`}, words[1:3])
	require.Contains(t, words[3], `afterTool c {"name":"h"`)
	require.Equal(t, `afterTool bad tool_input_invalid`, words[4], "what is refused is not executed")
}

// A node that continues after a crash says what it does, not what was recorded
// before.
func TestAfterACrashHooksHearOfWhatComes(t *testing.T) {
	log, inside := memory.New(), make(chan struct{}, 2)
	o := newTold()
	slow := agentloop.NewTool("slow", "", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (string, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	agent := agentloop.Agent{Name: "a", Tools: []agentloop.Tool{slow}, Model: script(toolStep("slow", "c", `{}`), done), Hooks: o.hooks("")}
	first := newRigOn(t, log, agent)
	first.start("s", "a", "go")
	<-inside
	first.loop.Stop()
	require.Equal(t, `beforeTool slow c {}`, o.all()[5])

	o = newTold()
	agent.Hooks = o.hooks("")
	agent.Tools = []agentloop.Tool{agentloop.NewTool("slow", "", func(context.Context, *agentloop.Call, struct{}) (string, error) {
		return "quick", nil
	})}
	second := newRigOn(t, log, agent)
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.Equal(t, []string{
		`resumed interrupted continue`, `beforeTool slow c {}`, `message tool c "quick"`, `afterTool c "quick"`,
		`beforeLLM 2.1, 3 messages`, `afterLLM 2`, `message assistant "ok"`, `complete "ok"`,
	}, o.until(t, `complete "ok"`))
}

func TestAnEarlierTurnDoneAgainIsResumed(t *testing.T) {
	o := newTold()
	g := newRig(t, agentloop.Agent{Name: "a", Model: script(done), Hooks: o.hooks("")})
	g.start("s", "a", "go")
	o.until(t, `complete "ok"`)
	g.loop.Stop()

	o = newTold()
	again := newRigOn(t, g.log, agentloop.Agent{Name: "a", Model: script(done), Hooks: o.hooks("")})
	_, err := again.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeRetry})
	require.NoError(t, err)
	require.Equal(t, `resumed  retry`, o.until(t, `complete "ok"`)[0])
}
