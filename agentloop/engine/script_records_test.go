package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// telling are the fields of records that scripts show, in this order: those
// with a dot before them without their names. A kind of record that is not
// here is not shown.
var telling = map[string]string{
	"text_delta":             ".delta",   // in one piece
	"thinking":               ".content", // whole blocks
	"tool_start":             ".toolCallId .toolName .arguments",
	"tool_end":               ".toolCallId result errorCode error providerExecuted",
	"tool_approval_request":  ".toolCallId .toolName .input approvalId",
	"tool_approval_response": ".toolCallId approved reason",
	"tool_input_error":       ".toolCallId error",
	"tool_output_error":      ".toolCallId error",
	"subagent_start":         ".callId .subSessionId",
	"subagent_end":           ".callId .subSessionId result",
	"state_patch":            ".patches",
	"error":                  ".code recoverable error errorDetail",
	"output":                 ".output",
	"step_start":             ".stepId",
	"step_end":               ".stepId finishReason",
	"step_committed":         ".stepId",
	"checkpoint_created":     ".checkpointId stepCount",
	"run_interrupted":        ".runId reason checkpointId",
	"run_resumed":            ".runId mode fromStepCount fromCheckpointId",
	"run_paused":             ".runId reason pendingToolCallId",
	// not executor_superseded, which comes when it comes
	"step_discarded": ".stepId reason",
	"stream_resync":  ".reason stepCount messageCount checkpointId fromSequence",

	"session_created":     ".agentType state child",
	"session_forked":      "fromSessionId fromSequence",
	"user_message":        ".content metadata",
	"run_requested":       ".runId mode",
	"run_claimed":         ".node attempt",
	"model_turn":          ".stepId stopReason",
	"memory_recalled":     ".query memories error",
	"model_failed":        ".stepId attempt code retryable error",
	"tool_result":         ".toolCallId result errorCode error",
	"call_suspended":      ".toolCallId kind approvalId childSessionId deadline",
	"result_submitted":    ".toolCallId kind result approved reason error",
	"interrupt_requested": ".kind runId reason code byParent",
	"run_ended":           ".runId .status output errorCode error",
	"truncated":           ".reason",
	"stream_paused":       ".reason",
	"workspace_opened":    ".name .capabilities",
	"workspace_failed":    ".name error",
	"workspace_saved":     "",
	"workspace_restored":  "",
	"stream_end":          "finalOutput",
	"stream_failed":       "error",
}

// shown is a record as a script shows it.
type shown struct {
	agent, call, kind, text string
}

// records shows the records that the log has got since the last time, but for
// those that were truncated. Calls of a step run at the same time: their records
// are put in the order of the calls' ids. With lanes each session's come
// together.
func (te *teller) records(ctx context.Context, _ *engine.Loop, rest string) (string, error) {
	head, err := te.log.Head(ctx, te.id())
	if err != nil {
		return "", err
	}
	var all []shown
	for r, err := range eventlog.Effective(ctx, te.log, te.id(), te.printed[te.session], head) {
		if err != nil {
			return "", err
		}
		if s, ok := te.show(r); ok && !te.heard(r, s) {
			all = append(all, s)
		}
	}
	te.printed[te.session] = head
	if rest == "lanes" {
		slices.SortStableFunc(all, func(a, b shown) int { return strings.Compare(a.agent, b.agent) })
	}
	inCallOrder(all)
	all = inOnePiece(all)
	var out strings.Builder
	for i, s := range all {
		if s.agent != te.id() && (i == 0 || all[i-1].agent != s.agent) {
			fmt.Fprintf(&out, "%s:\n", s.agent)
		} else if i > 0 && s.agent == te.id() && all[i-1].agent != s.agent {
			fmt.Fprintf(&out, "%s:\n", s.agent)
		}
		fmt.Fprintf(&out, "%s %s\n", s.kind, s.text)
	}
	return strings.ReplaceAll(out.String(), " \n", "\n"), nil
}

// heard reports whether a record only says that who drives the run has heard
// of a stop, which comes when it comes.
func (te *teller) heard(r eventlog.Record, s shown) bool {
	if s.kind != "[interrupt_requested]" {
		return false
	}
	again := te.stops[s] && r.Ordinal > 1 // by a writer with a claim, which is its first record
	te.stops[s] = true
	return again
}

// inCallOrder sorts what stands together of several calls.
func inCallOrder(all []shown) {
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].call != "" && all[to].agent == all[from].agent {
			to++
		}
		slices.SortStableFunc(all[from:to], func(a, b shown) int { return strings.Compare(a.call, b.call) })
		from = max(to, from+1)
	}
}

// inOnePiece joins text: how many records it takes depends on the log's pace.
func inOnePiece(all []shown) []shown {
	var joined []shown
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && s.kind == "text_delta" && joined[last].kind == s.kind && joined[last].agent == s.agent {
			joined[last].text += s.text
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// show picks what a script shows of a record.
func (te *teller) show(r eventlog.Record) (shown, bool) {
	fields, ok := telling[r.Type]
	if !ok {
		return shown{}, false
	}
	s := shown{agent: r.Agent, call: r.Call, kind: r.Type}
	if c, err := r.Chunk(); err == nil {
		switch c := c.(type) {
		case *eventlog.TextDelta:
			s.text = c.Delta
			return s, true
		case *eventlog.Thinking:
			s.text = c.Content
			return s, c.IsComplete
		}
	}
	if r.Kind == eventlog.KindFact {
		s.kind = "[" + r.Type + "]"
	}
	var values map[string]json.RawMessage
	require.NoError(te.t, json.Unmarshal(r.Payload, &values))
	var words []string
	for _, field := range strings.Fields(fields) {
		bare := strings.TrimPrefix(field, ".")
		value, ok := values[bare]
		if !ok || slices.Contains([]string{"null", `""`, "false", "{}"}, string(value)) && bare != "arguments" {
			continue
		}
		text := compact(value)
		if bare == "fromSequence" || bare == "deadline" {
			text = te.place(r, bare, text)
		}
		if bare == field {
			text = bare + "=" + text
		}
		words = append(words, text)
	}
	if f, err := r.Fact(); err == nil {
		if turn, ok := f.(*fact.ModelTurn); ok {
			words = append(words, said(turn.Parts))
		}
	}
	s.text = strings.Join(words, " ")
	return s, true
}

// place puts a number into words that are the same on every log.
func (te *teller) place(r eventlog.Record, field, number string) string {
	n := te.number(number)
	if field == "deadline" {
		return "+" + te.since(int64(n))
	}
	if n == 0 {
		return "0"
	}
	for at, err := range te.log.Read(te.t.Context(), te.id(), uint64(n)-1, uint64(n)) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			break
		}
		require.NoError(te.t, err)
		if at.Sequence == uint64(n) {
			return at.Type
		}
	}
	return "elsewhere"
}

// compact shows a JSON value: a string that is one word without its quotes.
func compact(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" && !strings.ContainsAny(s, " \n\"") {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// said shows a model's answer.
func said(parts []fact.TurnPart) string {
	var words []string
	for _, p := range parts {
		switch {
		case p.Reasoning != "":
			words = append(words, fmt.Sprintf("(%s)", p.Reasoning))
		case p.Text != "":
			words = append(words, fmt.Sprintf("%q", p.Text))
		case p.ToolCall != nil:
			words = append(words, fmt.Sprintf("%s=%s(%s)", p.ToolCall.ID, p.ToolCall.Name, compact(p.ToolCall.Arguments)))
		}
	}
	return strings.Join(words, " ")
}
