package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// measured is a rig whose loop is measured.
func measured(t *testing.T, log eventlog.Log, agents ...agentloop.Agent) (*rig, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	loop, err := engine.New(log, agents, &engine.Options{
		RetryDelay: time.Millisecond, Metrics: engine.NewMetrics(reg),
	})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &rig{t: t, log: log, loop: loop}, reg
}

// scraped returns what is measured, a sample a line.
func scraped(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	return strings.Split(text.String(), "\n")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	tool := func(name string, f func() error) agentloop.Tool {
		return agentloop.NewTool(name, "", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "x", f() })
	}
	slow := tool("slow", nil)
	slow.Timeout = time.Millisecond
	slow.Execute = func(ctx context.Context, _ *agentloop.Call, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	answer := used(done, 100, 200)
	answer.Usage.Cached, answer.Usage.CacheWrite, answer.Usage.Reasoning = 30, 20, 50
	g, reg := measured(t, memory.New(),
		agentloop.Agent{
			Name: "boss", SubAgents: []agentloop.SubAgent{{Agent: "helper"}},
			Tools: []agentloop.Tool{
				tool("search", func() error { return nil }), tool("broken", func() error { return errors.New("no") }), slow,
				{Name: "ask", Client: true},
			},
			Model: scripted.New([]scripted.Turn{
				used(toolStep("ask", "q", `{}`), 1, 2),
				used(scripted.Turn{ToolCalls: []scripted.Call{
					{ID: "h", Name: "subagent__helper", Arguments: json.RawMessage(`{"message":"x"}`)},
					{ID: "s", Name: "search"}, {ID: "b", Name: "broken"}, {ID: "w", Name: "slow"}, {ID: "o", Name: "made-up"},
				}}, 10, 20),
				answer,
			}, &scripted.Options{Name: "big"}),
		},
		agentloop.Agent{
			Name: "helper", OutputSchema: json.RawMessage(`{"type":"object"}`),
			Model: scripted.New([]scripted.Turn{used(toolStep("__finish__", "f", `{}`), 1000, 2000)}, &scripted.Options{Name: "small"}),
		},
		agentloop.Agent{Name: "unlucky", Model: scripted.New([]scripted.Turn{{Err: &model.Error{Code: model.CodeAuthFailed}}}, nil)},
	)
	g.start("s", "boss", "go")
	g.comes("s", func(t *projector.Tree) bool { return t.Waits() })
	released(t, g.loop) // or no further claim is needed
	_, err := g.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "q", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	g.ended("s")
	g.start("u", "unlucky", "go")
	g.ended("u")
	require.Eventually(t, func() bool { return !g.loop.Live("s") && !g.loop.Live("u") }, time.Minute, time.Millisecond)

	require.Subset(t, scraped(t, reg), []string{
		`helixd_runs_driven 0`,
		`helixd_claims_total 3`,
		`helixd_takeovers_total 0`,
		`helixd_runs_ended_total{agent="boss",outcome="suspended_client_tool"} 1`,
		`helixd_runs_ended_total{agent="boss",outcome="completed"} 1`,
		`helixd_runs_ended_total{agent="helper",outcome="completed"} 1`,
		`helixd_runs_ended_total{agent="unlucky",outcome="failed"} 1`,
		`helixd_tool_calls_total{outcome="ok",tool="ask"} 1`,
		`helixd_tool_calls_total{outcome="ok",tool="subagent__helper"} 1`,
		`helixd_tool_calls_total{outcome="ok",tool="__finish__"} 1`,
		`helixd_tool_calls_total{outcome="ok",tool="search"} 1`,
		`helixd_tool_calls_total{outcome="tool_execution_failed",tool="broken"} 1`,
		`helixd_tool_calls_total{outcome="tool_timeout",tool="slow"} 1`,
		`helixd_tool_calls_total{outcome="tool_not_found",tool="other"} 1`,
		`helixd_tool_duration_seconds_count{outcome="ok",tool="search"} 1`,
		`helixd_tool_duration_seconds_count{outcome="tool_execution_failed",tool="broken"} 1`,
		`helixd_tool_duration_seconds_count{outcome="tool_timeout",tool="slow"} 1`,
		`helixd_model_duration_seconds_count{model="big",outcome="ok"} 3`,
		`helixd_model_duration_seconds_count{model="small",outcome="ok"} 1`,
		`helixd_model_duration_seconds_count{model="scripted",outcome="provider_auth_failed"} 1`,
		`helixd_model_first_token_seconds_count{model="big"} 3`,
		`helixd_tokens_total{kind="input",model="big"} 111`,
		`helixd_tokens_total{kind="output",model="big"} 222`,
		`helixd_tokens_total{kind="cached_input",model="big"} 30`,
		`helixd_tokens_total{kind="cache_write",model="big"} 20`,
		`helixd_tokens_total{kind="reasoning",model="big"} 50`,
		`helixd_tokens_total{kind="output",model="small"} 2000`,
	})
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestMetricsOfWorkspaces(t *testing.T) {
	t.Parallel()
	s, reg := newShelf(), prometheus.NewPedanticRegistry()
	s.fails = func(what string) error {
		if what == "take" && s.taken.Load() == 1 {
			return workspace.ErrQuota
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{Metrics: engine.NewMetrics(reg)}, coder(
		"a", "workspace_write_file", `{"path":"a","content":"1"}`,
		"b", "workspace_read_file", `{"path":"none"}`,
		"c", "workspace_write_file", `{"path":"c","content":"2"}`,
	))
	g.start("s", "coder", "go")
	g.ended("s")
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
	require.NoError(t, err)
	_, err = g.loop.Admin.Erase(t.Context(), "f")
	require.NoError(t, err)
	require.Subset(t, scraped(t, reg), []string{
		`helixd_workspace_duration_seconds_count{operation="open",outcome="ok",provider="shelf"} 1`,
		`helixd_workspace_duration_seconds_count{operation="use",outcome="ok",provider="shelf"} 2`,
		`helixd_workspace_duration_seconds_count{operation="use",outcome="failed",provider="shelf"} 1`,
		`helixd_workspace_duration_seconds_count{operation="snapshot",outcome="full",provider="shelf"} 1`,
		`helixd_workspace_duration_seconds_count{operation="adopt",outcome="ok",provider="shelf"} 2`,
		`helixd_workspace_duration_seconds_count{operation="remove",outcome="ok",provider="shelf"} 2`,
	})
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestMetricsOfATakeover(t *testing.T) {
	t.Parallel()
	store, hangs := memory.New(), make(chan struct{}, 1)
	first, lost := measured(t, store, agentloop.Agent{Name: "a", Model: stuck(hangs)})
	second, won := measured(t, store, agentloop.Agent{Name: "a", Model: script(done)})
	first.start("s", "a", "go")
	<-hangs
	require.Contains(t, scraped(t, lost), `helixd_runs_driven 1`)
	second.loop.Offer("s", 1, true)
	released(t, first.loop)
	second.ended("s")
	released(t, second.loop)
	text := scraped(t, lost)
	require.Contains(t, strings.Join(text, "\n"), `helixd_model_duration_seconds_count{model="other",outcome="cut_off"}`)
	require.Subset(t, text, []string{
		`helixd_runs_lost_total{cause="superseded"} 1`, `helixd_takeovers_total 0`, `helixd_runs_driven 0`,
	})
	require.Subset(t, scraped(t, won), []string{
		`helixd_takeovers_total 1`, `helixd_claims_total 1`, `helixd_runs_ended_total{agent="a",outcome="completed"} 1`,
	})
}

// A rollback is no takeover: no other node continues.
func TestMetricsOfARollback(t *testing.T) {
	t.Parallel()
	store, hangs := memory.New(), make(chan struct{}, 1)
	g, reg := measured(t, store, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}}, Model: modelFunc(
			func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
				if len(req.Messages) == 1 {
					return script(call("ask", `{}`)).Generate(ctx, req, emit)
				}
				return stuck(hangs).Generate(ctx, req, emit)
			}),
	})
	g.start("s", "a", "go")
	state := g.comes("s", func(t *projector.Tree) bool { return t.StreamStatus == eventlog.StreamWaiting })
	released(t, g.loop)
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Messages: []agentloop.Input{{Content: "never mind"}}})
	require.NoError(t, err)
	<-hangs
	_, err = g.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: state.Head})
	require.NoError(t, err)
	released(t, g.loop)
	require.NotContains(t, strings.Join(scraped(t, reg), "\n"), "helixd_runs_lost_total{")
	require.NotContains(t, g.types("s"), "executor_superseded")
}

// TestMetricsStayFew: what models make up is no label.
func TestMetricsStayFew(t *testing.T) {
	t.Parallel()
	const odd = 200
	turn := scripted.Turn{}
	for i := range odd {
		turn.ToolCalls = append(turn.ToolCalls, scripted.Call{ID: fmt.Sprint("c", i), Name: fmt.Sprint("odd", i)})
	}
	g, reg := measured(t, memory.New(), agentloop.Agent{Name: "a", Model: script(turn, done)})
	g.start("s", "a", "go")
	g.ended("s")
	text := scraped(t, reg)
	require.Contains(t, text, fmt.Sprintf(`helixd_tool_calls_total{outcome="tool_not_found",tool="other"} %d`, odd))
	require.NotContains(t, strings.Join(text, "\n"), "odd")
}
