package timeline_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/timeline"
	"github.com/helixd/helixd/projector/timeline/timelinetest"
)

// story makes records: each is a second after the last one, at twice its
// place.
type story struct {
	records []eventlog.Record
	run     string
}

func (s *story) now() int64 { return 1_000 * int64(len(s.records)) }

func (s *story) put(e eventlog.Entry, err error) uint64 {
	if err != nil {
		panic(err)
	}
	seq := uint64(2*len(s.records) + 2)
	s.records = append(s.records, eventlog.Record{Sequence: seq, Entry: e})
	return seq
}

// fact appends a fact of the session and of the run, which wants its base.
func (s *story) fact(session string, f func(fact.Base) fact.Fact) uint64 {
	return s.put(eventlog.NewFact(session, f(fact.Base{SessionID: session, Timestamp: s.now()}), eventlog.Labels{Run: s.run}))
}

func (s *story) chunk(session, call string, c func(eventlog.Base) eventlog.Chunk) uint64 {
	base := eventlog.Base{AgentID: session, AgentType: "a", Timestamp: s.now(), Step: 1}
	return s.put(eventlog.NewChunk(c(base), eventlog.Labels{Run: s.run, Call: call}))
}

func (s *story) begin(session string) {
	s.fact(session, func(b fact.Base) fact.Fact {
		return &fact.SessionCreated{AgentType: "a", Base: b}
	})
	s.say(session, "go")
	s.request(session, "r1", fact.ModeStart)
}

func (s *story) say(session, text string) uint64 {
	return s.fact(session, func(b fact.Base) fact.Fact { return &fact.UserMessage{Content: text, Base: b} })
}

func (s *story) request(session, run string, mode fact.RunMode) uint64 {
	s.run = run
	return s.fact(session, func(b fact.Base) fact.Fact {
		return &fact.RunRequested{RunID: run, Mode: mode, Base: b}
	})
}

func (s *story) claim(node string, attempt int) uint64 {
	return s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.RunClaimed{RunID: s.run, Node: node, Attempt: attempt, Base: b}
	})
}

func (s *story) step(session, id string) uint64 {
	return s.chunk(session, "", func(b eventlog.Base) eventlog.Chunk { return &eventlog.StepStart{StepID: &id, Base: b} })
}

func (s *story) text(session string, words ...string) {
	for _, w := range words {
		s.chunk(session, "", func(b eventlog.Base) eventlog.Chunk { return &eventlog.TextDelta{Delta: w, Base: b} })
	}
}

// turn records a model's answer with calls of tools.
func (s *story) turn(session, step string, calls ...string) uint64 {
	return s.fact(session, func(b fact.Base) fact.Fact {
		f := &fact.ModelTurn{RunID: s.run, StepID: step, Step: 1, StopReason: fact.StopToolUse, Parts: []fact.TurnPart{}, Base: b}
		for _, id := range calls {
			f.Parts = append(f.Parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: "t", Arguments: json.RawMessage(`{}`)}})
		}
		return f
	})
}

func (s *story) start(session, call string) uint64 {
	return s.chunk(session, call, func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.ToolStart{ToolCallID: call, ToolName: "t", Arguments: json.RawMessage(`{}`), Base: b}
	})
}

func (s *story) result(session, step, call, problem string) uint64 {
	cause := ""
	if problem != "" {
		cause = "GET https://t.example: 503"
	}
	return s.fact(session, func(b fact.Base) fact.Fact {
		return &fact.ToolResult{
			RunID: s.run, StepID: step, ToolCallID: call, ToolName: "t", Result: json.RawMessage(`null`), Error: problem, Cause: cause, Base: b,
		}
	})
}

func (s *story) wait(session, step, call string, kind fact.PendingKind) uint64 {
	return s.fact(session, func(b fact.Base) fact.Fact {
		return &fact.CallSuspended{RunID: s.run, StepID: step, ToolCallID: call, ToolName: "t", Kind: kind, Base: b}
	})
}

func (s *story) end(session string, status fact.RunStatus) uint64 {
	return s.fact(session, func(b fact.Base) fact.Fact {
		return &fact.RunEnded{RunID: s.run, Status: status, Base: b}
	})
}

func (s *story) truncate(reason eventlog.ResyncReason, ranges ...eventlog.Range) uint64 {
	return s.fact("s", func(b fact.Base) fact.Fact {
		return &eventlog.Truncated{Reason: reason, Ranges: ranges, AtSequence: uint64(2 * len(s.records)), Base: b}
	})
}

// spans returns those of a kind.
func spans(v timeline.View, kind timeline.Kind) (found []timeline.Span) {
	for _, s := range v.Spans {
		if s.Kind == kind {
			found = append(found, s)
		}
	}
	return found
}

func marks(v timeline.View, kind timeline.MarkKind) (found []timeline.Mark) {
	for _, m := range v.Marks {
		if m.Kind == kind {
			found = append(found, m)
		}
	}
	return found
}

func TestTokensAreOneSpan(t *testing.T) {
	s := new(story)
	s.begin("s")
	s.step("s", "st")
	for range 5_000 {
		s.text("s", "wörd")
	}
	v := timelinetest.Fold(s.records...).Since(0)
	text := spans(v, timeline.KindText)
	require.Len(t, text, 1)
	require.Equal(t, 5_000, text[0].Records)
	require.Equal(t, 20_000, text[0].Chars)
	require.True(t, text[0].Open)
	require.EqualValues(t, 4_999*1_000, text[0].EndedAt-text[0].StartedAt)
	require.Len(t, v.Spans, 4, "a message, a run, a step and a text")
}
