// Package metrics measures what a loop does.
package metrics

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Metrics measure what a loop does. Labels are names that the agents' definitions
// have, or one of few words; what models and callers make up is "other".
type Metrics struct {
	driven    prometheus.Gauge
	claims    prometheus.Counter
	takeovers prometheus.Counter
	lost      *prometheus.CounterVec
	runs      *prometheus.CounterVec

	toolCalls *prometheus.CounterVec
	tools     *prometheus.HistogramVec

	recalls    *prometheus.HistogramVec
	workspaces *prometheus.HistogramVec
	models     *prometheus.HistogramVec
	firstToken *prometheus.HistogramVec
	tokens     *prometheus.CounterVec
}

// New registers what a loop measures. It panics if that is registered
// already.
func New(reg prometheus.Registerer) *Metrics {
	r := promauto.With(reg)
	return &Metrics{
		driven: r.NewGauge(prometheus.GaugeOpts{
			Name: "helixd_runs_driven", Help: "Number of session trees that this node drives now, or is about to drive.",
		}),
		claims: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_claims_total", Help: "Claims of session trees by this node. Rises each time it starts to drive one.",
		}),
		takeovers: r.NewCounter(prometheus.CounterOpts{
			Name: "helixd_takeovers_total",
			Help: "Claims by this node of runs that another process had claimed before: that process died, was stopped, drained, or was cut off.",
		}),
		lost: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_runs_lost_total",
			Help: "Session trees that this node drove and another node continues, by cause: superseded (the other node took over), drained (this node is stopping) or spread (the other node is less busy).",
		}, []string{"cause"}),
		runs: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_runs_ended_total",
			Help: "Runs, sub-agents included, whose end this node has recorded, by agent and outcome: completed, failed, aborted, poisoned (the processes that drove it died again and again), interrupted, suspended_client_tool, suspended_awaiting_children, suspended_step_partial.",
		}, []string{"agent", "outcome"}),
		toolCalls: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_tool_calls_total",
			Help: "Tool calls whose result this node has recorded: executed, answered by a person or a sub-agent, or refused. outcome is ok or the call's error code.",
		}, []string{"tool", "outcome"}),
		tools: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_tool_duration_seconds",
			Help:    "Duration of the tool calls that this node executed, in seconds. outcome is ok, the call's error code, or stopped (the run was stopped).",
			Buckets: []float64{.001, .005, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"tool", "outcome"}),
		recalls: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_recall_duration_seconds",
			Help:    "Time to search an agent's memories at the beginning of a turn, in seconds. outcome is found, nothing or failed.",
			Buckets: []float64{.001, .0025, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"agent", "outcome"}),
		workspaces: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_workspace_duration_seconds",
			Help:    "Duration of requests to a workspace provider, in seconds, by operation: open, resolve (find an open one), use (a call of the model), snapshot, restore, adopt (a snapshot, for a fork), collect (replaced and deleted files of a session tree) or remove (all workspaces of a session tree). outcome is ok, gone (it does not exist any more), elsewhere (another node has it), full, pending (bytes may be left), stopped (the run was stopped) or failed, mistakes of the model included.",
			Buckets: []float64{.001, .005, .02, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"provider", "operation", "outcome"}),
		models: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_model_duration_seconds",
			Help:    "Time from a model call to the end of its answer, in seconds. outcome is ok, the failure's code, or cut_off (the run was stopped, or the log refused appends).",
			Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 20, 40, 60, 120, 300, 600},
		}, []string{"model", "outcome"}),
		firstToken: r.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "helixd_model_first_token_seconds",
			Help:    "Time from a model call to the first piece of its answer, in seconds.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 20, 60, 120},
		}, []string{"model"}),
		tokens: r.NewCounterVec(prometheus.CounterOpts{
			Name: "helixd_tokens_total",
			Help: "Tokens of recorded model answers, as counted by the provider, by kind: input and output; cached_input and cache_write are parts of input, reasoning is a part of output.",
		}, []string{"model", "kind"}),
	}
}

// other is the label of what no definition has.
const other = "other"

// outcomes are the error codes that are labels.
var outcomes = []string{
	agentloop.CodeMaxSteps, agentloop.CodeMaxDepth, agentloop.CodeOutputMissing, agentloop.CodeUnknownAgent, agentloop.CodeToolFailed, agentloop.CodeToolTimeout, agentloop.CodeToolNotFound,
	agentloop.CodeToolInput, agentloop.CodeToolOutput, agentloop.CodeInternal, agentloop.CodeAborted, agentloop.CodeClientToolTimeout, agentloop.CodeClientToolAbandoned, agentloop.CodeClientToolError,
	agentloop.CodeClientToolInvalid, agentloop.CodeApprovalDenied, agentloop.CodePoisoned, agentloop.CodeRemoteClientTool, agentloop.CodeTooManyCalls, agentloop.CodeSessionExpired, agentloop.CodeQuotaExceeded,
	model.CodeRateLimited, model.CodeOverloaded, model.CodeUnavailable, model.CodeTimeout, model.CodeAuthFailed,
	model.CodeInvalidRequest, model.CodeContextLength, model.CodeContentFiltered, model.CodeProvider,
}

// Outcome is the label of an error code; of none it is ok.
func Outcome(code string) string {
	switch {
	case code == "":
		return "ok"
	case slices.Contains(outcomes, code):
		return code
	}
	return other
}

// Agents begins the counters of failures at 0. Without that, Prometheus takes the first failure for
// the counter's beginning, and sees no increase.
func (m *Metrics) Agents(defs map[string]*plan.Agent) {
	for name := range defs {
		m.runs.WithLabelValues(name, outcomePoisoned)
		m.runs.WithLabelValues(name, string(fact.RunFailed))
	}
}

func agentLabel(d *plan.Agent) string {
	if d == nil {
		return other
	}
	return d.Name
}

func toolLabel(d *plan.Agent, tool string) string {
	if d == nil {
		return other
	}
	if _, known := d.ArgumentsOf(tool); known || d.Remotes[tool] != nil {
		return tool
	}
	return other
}

func modelLabel(d *plan.Agent) string {
	if d == nil {
		return other
	}
	if name := model.NameOf(d.Model); name != "" {
		return name
	}
	return other
}

// Drives adds n to the trees that this node drives.
func (m *Metrics) Drives(n float64) {
	m.driven.Add(n)
}

// Claimed counts a claim.
func (m *Metrics) Claimed(takeover bool) {
	m.claims.Inc()
	if takeover {
		m.takeovers.Inc()
	}
}

// LostTo counts a tree that another node continues with, by cause.
func (m *Metrics) LostTo(cause string) {
	m.lost.WithLabelValues(cause).Inc()
}

// Executed measures the execution of a tool.
func (m *Metrics) Executed(d *plan.Agent, tool, outcome string, took time.Duration) {
	m.tools.WithLabelValues(toolLabel(d, tool), outcome).Observe(took.Seconds())
}

// Recalled measures what it took to recall memories.
func (m *Metrics) Recalled(d *plan.Agent, found int, err error, took time.Duration) {
	outcome := "found"
	switch {
	case err != nil:
		outcome = "failed"
	case found == 0:
		outcome = "nothing"
	}
	m.recalls.WithLabelValues(agentLabel(d), outcome).Observe(took.Seconds())
}

// Asked measures what a provider of workspaces was asked to do.
func (m *Metrics) Asked(ctx context.Context, provider, operation string, err error, took time.Duration) {
	outcome := "failed"
	switch {
	case err == nil:
		outcome = "ok"
	case errors.Is(ctx.Err(), context.Canceled):
		outcome = "stopped"
	case errors.Is(err, workspace.ErrGone):
		outcome = "gone"
	case errors.Is(err, workspace.ErrElsewhere):
		outcome = "elsewhere"
	case errors.Is(err, workspace.ErrQuota):
		outcome = "full"
	case errors.Is(err, workspace.ErrPending):
		outcome = "pending"
	}
	m.workspaces.WithLabelValues(provider, operation, outcome).Observe(took.Seconds())
}

// ModelCall measures one call of a model.
type ModelCall struct {
	m     *Metrics
	model string
	began time.Time
	spoke bool
}

// ModelCall begins to measure a call of an agent's model.
func (m *Metrics) ModelCall(d *plan.Agent) *ModelCall {
	return &ModelCall{m: m, model: modelLabel(d), began: time.Now()}
}

// Speaks records a piece of the answer.
func (c *ModelCall) Speaks() {
	if !c.spoke {
		c.spoke = true
		c.m.firstToken.WithLabelValues(c.model).Observe(time.Since(c.began).Seconds())
	}
}

// Ended measures the whole call.
func (c *ModelCall) Ended(outcome string) {
	c.m.models.WithLabelValues(c.model, outcome).Observe(time.Since(c.began).Seconds())
}

// Count counts what a fact of this node's says. s is the session that it is of,
// d its agent; each may be nil.
func (m *Metrics) Count(rec eventlog.Record, s *projector.Session, d *plan.Agent) {
	switch rec.Type {
	case (*fact.ModelTurn)(nil).Type(), (*fact.ToolResult)(nil).Type(), (*fact.RunEnded)(nil).Type():
	default:
		return
	}
	f, err := rec.Fact()
	if s == nil || err != nil || s.Child != nil && s.Child.Remote { // what another server does it counts itself
		return
	}
	switch f := f.(type) {
	case *fact.ModelTurn:
		m.used(modelLabel(d), f.Usage)
	case *fact.ToolResult:
		m.toolCalls.WithLabelValues(toolLabel(d, f.ToolName), Outcome(f.ErrorCode)).Inc()
	case *fact.RunEnded:
		m.runs.WithLabelValues(agentLabel(d), runOutcome(f)).Inc()
	}
}

func (m *Metrics) used(model string, u fact.TokenUsage) {
	for kind, n := range map[string]int64{
		"input": u.Prompt, "output": u.Completion, "cached_input": u.Cached, "cache_write": u.CacheWrite, "reasoning": u.Reasoning,
	} {
		if n > 0 { // a counter never falls, even if a provider reports less
			m.tokens.WithLabelValues(model, kind).Add(float64(n))
		}
	}
}

const outcomePoisoned = "poisoned" // the processes that drove it died again and again

func runOutcome(f *fact.RunEnded) string {
	switch f.Status {
	case fact.RunFailed:
		switch f.ErrorCode {
		case agentloop.CodeAborted:
			return "aborted"
		case agentloop.CodePoisoned:
			return outcomePoisoned
		}
		return string(f.Status)
	case fact.RunCompleted, fact.RunStopped, fact.RunClientTool, fact.RunChildren, fact.RunStepPartial:
		return string(f.Status)
	}
	return other
}
