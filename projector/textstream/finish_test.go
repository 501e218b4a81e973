package textstream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/textstream"
	"github.com/helixd/helixd/projector/uimessage"
)

func TestFinish(t *testing.T) {
	ends := func(reason eventlog.FinishReason) any {
		return &eventlog.StepEnd{FinishReason: &reason, Base: of(root)}
	}
	odd := eventlog.Record{Entry: eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "step_end", Agent: root},
		Payload:  []byte(`{"type":"step_end","finishReason":"newer"}`),
	}}
	for _, test := range []struct {
		outcome uimessage.Outcome
		last    any
		want    string
	}{
		{uimessage.Completed, &eventlog.StepStart{Base: of(root)}, "stop"},
		{uimessage.Completed, ends(eventlog.FinishStop), "stop"},
		{uimessage.Completed, ends(eventlog.FinishToolCalls), "stop"},
		{uimessage.Completed, ends(eventlog.FinishLength), "length"},
		{uimessage.Completed, ends(eventlog.FinishContentFilter), "content-filter"},
		{uimessage.Completed, odd, "other"},
		{uimessage.Waiting, ends(eventlog.FinishStop), "tool-calls"},
		{uimessage.Interrupted, ends(eventlog.FinishStop), "other"},
		{uimessage.Failed, ends(eventlog.FinishStop), "error"},
		{uimessage.Aborted, ends(eventlog.FinishStop), "error"},
	} {
		e := newEncoder()
		encoded(e, records(t, test.last), 0)
		frames := e.End(uimessage.Ending{Outcome: test.outcome, Error: "broke"})
		finish := frames[len(frames)-1]
		require.Equal(t, test.want, parse(t, finish).FinishReason, "%s behind %v", test.outcome, test.last)
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "x", Base: of(root)}
	end := uimessage.Ending{Outcome: uimessage.Failed, Error: "broke"}

	e := newEncoder()
	encoded(e, records(t, &eventlog.StepStart{Base: of(root)}, text), 0)
	require.Equal(t, script(`
		{"type":"error","error":"broke"}
		{"type":"text-end","id":"text-0"}
		{"type":"finish-step"}
		{"type":"finish","finishReason":"error","totalUsage":{"inputTokens":0,"outputTokens":0,"totalTokens":0},"metadata":{"durationMs":1000}}`),
		script(join(lines(e.End(end)))))

	for _, seen := range []uint64{0, 1} {
		e = newEncoder()
		encoded(e, records(t, &eventlog.Error{Error: "broke", Base: of(root)}), seen)
		require.Len(t, e.End(end), 1, "the chunk has said it")
	}
}

// Usage and duration are the whole message's, whatever the client has seen.
func TestTotals(t *testing.T) {
	spent := func(in, out int64) *fact.ModelTurn {
		return &fact.ModelTurn{StepID: "1", Usage: fact.TokenUsage{Prompt: in, Completion: out, Reasoning: 1, Total: in + out}}
	}
	asked := &fact.RunRequested{RunID: "r", Mode: fact.ModeStart} // it may be given, or not
	submitted := &fact.ResultSubmitted{ToolCallID: "c", Kind: fact.SubmitTimeout}
	all := records(t, asked, &eventlog.StepStart{Base: of(root)}, spent(10, 1), about(t, child, spent(20, 2)), spent(30, 3),
		&eventlog.StepEnd{Base: of(root)}, submitted)
	all[5].Time = all[1].Time.Add(90 * time.Second)
	all[6].Time = all[1].Time.Add(time.Hour)
	for seen := range uint64(len(all) + 1) {
		e := newEncoder()
		encoded(e, all, seen)
		frames := e.End(uimessage.Ending{Outcome: uimessage.Completed})
		require.JSONEq(t, `{"type":"finish","finishReason":"stop","totalUsage":{"inputTokens":60,"outputTokens":6,"totalTokens":66},
			"metadata":{"durationMs":90000}}`, string(frames[len(frames)-1]))
	}
}

// The cost is the message's, in the whole tree, if all prices are known.
func TestCost(t *testing.T) {
	turn := func(model string, out int64) *fact.ModelTurn {
		return &fact.ModelTurn{StepID: "1", Model: model, Usage: fact.TokenUsage{Completion: out}}
	}
	known := func(model string, tokens fact.TokenUsage) (float64, bool) {
		return float64(tokens.Completion) / 2, model != "new"
	}
	for _, test := range []struct {
		price func(string, fact.TokenUsage) (float64, bool)
		turns []any
		want  *float64
	}{
		{known, []any{turn("a", 1), about(t, child, turn("b", 2))}, new(1.5)},
		{known, []any{turn("a", 0)}, new(0.0)},
		{known, []any{turn("a", 1), turn("new", 1)}, nil},
		{known, nil, nil},
		{nil, []any{turn("a", 1)}, nil},
	} {
		e := textstream.New(textstream.Options{Root: root, Cost: test.price})
		encoded(e, records(t, test.turns...), 0)
		frames := e.End(uimessage.Ending{Outcome: uimessage.Completed})
		require.Equal(t, test.want, parse(t, frames[len(frames)-1]).Metadata.Cost)
	}
}

// An imported record was written when it was written.
func TestDurationOfAnImportedMessage(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "x", Base: of(root)}
	all := records(t, text, text)
	for i := range all {
		all[i].Time = time.Unix(1000, 0)
		all[i].Origin = eventlog.Origin{Sequence: 1, Time: time.Unix(int64(5*i), 0)}
	}
	e := newEncoder()
	encoded(e, all, 0)
	frames := e.End(uimessage.Ending{})
	require.Equal(t, int64(5000), *parse(t, frames[len(frames)-1]).Metadata.DurationMs)
}
