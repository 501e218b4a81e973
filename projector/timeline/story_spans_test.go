package timeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/timeline"
	"github.com/helixd/helixd/projector/timeline/timelinetest"
)

func (s *story) view() timeline.View { return timelinetest.Fold(s.records...).Since(0) }

// lasted is how long a span lasted.
func lasted(s timeline.Span) int64 { return s.EndedAt - s.StartedAt }

// only returns the one span of a kind.
func only(t *testing.T, v timeline.View, kind timeline.Kind) timeline.Span {
	t.Helper()
	found := spans(v, kind)
	require.Len(t, found, 1, "%s", kind)
	return found[0]
}

func TestAToolLastsFromItsStartToItsResult(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.claim("node-1", 1)
	s.step("s", "st")
	s.turn("s", "st", "a", "b")
	a := s.start("s", "a")
	s.start("s", "b")
	s.chunk("s", "a", func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.CustomEvent{EventName: "half", Data: []byte(`1`), Base: b}
	})
	s.result("s", "st", "b", "it broke")
	s.result("s", "st", "a", "")
	end := s.chunk("s", "a", func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.ToolEnd{ToolCallID: "a", ToolName: "t", Result: []byte(`1`), Base: b}
	})
	tools := spans(s.view(), timeline.KindTool)
	require.Len(t, tools, 2)
	require.EqualValues(t, 4_000, lasted(tools[0]))
	require.Equal(t, timeline.StatusDone, tools[0].Status)
	require.Equal(t, []any{"t", "a", "node-1", "r1", 1, 4}, []any{
		tools[0].Label, tools[0].CallID, tools[0].Node, tools[0].RunID, tools[0].Turn, tools[0].Records,
	})
	require.Equal(t, []uint64{a, end}, []uint64{tools[0].From, tools[0].To})
	require.EqualValues(t, 2_000, lasted(tools[1]))
	require.Equal(t, []any{timeline.StatusFailed, "it broke", "GET https://t.example: 503"}, []any{tools[1].Status, tools[1].Error, tools[1].Cause})
	require.Empty(t, tools[0].Cause)
}

// A person's wait is from the request to the answer, whenever the run continues.
func TestAnApprovalLastsFromTheRequestToTheAnswer(t *testing.T) {
	t.Parallel()
	for approved, status := range map[bool]timeline.Status{true: timeline.StatusDone, false: timeline.StatusDenied} {
		s := new(story)
		s.begin("s")
		s.step("s", "st")
		s.turn("s", "st", "a")
		asked := s.wait("s", "st", "a", fact.PendingApproval)
		ended := s.end("s", fact.RunClientTool)
		v := s.view()
		wait := only(t, v, timeline.KindApproval)
		require.Equal(t, []any{true, timeline.StatusWaiting}, []any{wait.Open, wait.Status})
		require.Equal(t, timeline.StatusWaiting, only(t, v, timeline.KindRun).Status)
		require.Equal(t, []any{ended, "client_tool", true}, []any{
			only(t, v, timeline.KindSuspended).From, only(t, v, timeline.KindSuspended).Label, only(t, v, timeline.KindSuspended).Open,
		})
		answered := s.fact("s", func(b fact.Base) fact.Fact {
			return &fact.ResultSubmitted{ToolCallID: "a", Kind: fact.SubmitApproval, Approved: approved, Reason: "no", Base: b}
		})
		for range 5 {
			s.say("other", "meanwhile")
		}
		s.request("s", "r2", fact.ModeContinue)
		s.chunk("s", "a", func(b eventlog.Base) eventlog.Chunk {
			return &eventlog.ToolApprovalResponse{ToolCallID: "a", ToolName: "t", ApprovalID: "x", Approved: approved, Base: b}
		})
		if approved {
			s.start("s", "a")
			s.result("s", "st", "a", "")
		} else {
			s.result("s", "st", "a", "it was not approved")
		}
		v = s.view()
		wait = only(t, v, timeline.KindApproval)
		require.Equal(t, []any{asked, answered, false, status}, []any{wait.From, wait.To, wait.Open, wait.Status})
		require.EqualValues(t, 2_000, lasted(wait))
		require.False(t, only(t, v, timeline.KindSuspended).Open)
		runs := spans(v, timeline.KindRun)
		require.Equal(t, []timeline.Status{timeline.StatusDone, timeline.StatusOpen}, []timeline.Status{runs[0].Status, runs[1].Status})
		if approved {
			require.EqualValues(t, 1_000, lasted(only(t, v, timeline.KindTool)))
		} else {
			require.Empty(t, spans(v, timeline.KindTool), "it was not executed")
		}
	}
}

func TestAClientToolLastsUntilItsAnswer(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.step("s", "st")
	s.turn("s", "st", "a")
	s.wait("s", "st", "a", fact.PendingClient)
	s.start("s", "a")
	s.end("s", fact.RunClientTool)
	s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.ResultSubmitted{ToolCallID: "a", Kind: fact.SubmitClientResult, Result: []byte(`1`), Base: b}
	})
	s.request("s", "r2", fact.ModeContinue)
	s.result("s", "st", "a", "")
	v := s.view()
	tool := only(t, v, timeline.KindClientTool)
	require.EqualValues(t, 3_000, lasted(tool))
	require.Equal(t, []any{timeline.StatusDone, false}, []any{tool.Status, tool.Open})
	require.Empty(t, spans(v, timeline.KindTool))
}

func TestSubAgentsHaveLanesBeneathTheirParents(t *testing.T) {
	t.Parallel()
	s := new(story)
	child := func(id, parent, call string) {
		s.fact(id, func(b fact.Base) fact.Fact {
			return &fact.SessionCreated{AgentType: "of " + parent, Child: &fact.SubSession{
				ParentSessionID: parent, CallID: call, Mode: fact.SubSessionEphemeral,
			}, Base: b}
		})
	}
	s.begin("s")
	s.step("s", "st")
	s.turn("s", "st", "a", "b")
	from := s.start("s", "a")
	s.chunk("s", "a", func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.SubAgentStart{SubAgentType: "helper", SubSessionID: "one", CallID: "a", Base: b}
	})
	s.wait("s", "st", "a", fact.PendingChild)
	child("one", "s", "a")
	child("two", "s", "b")
	child("deep", "one", "c")
	s.request("one", "r-one", fact.ModeStart)
	s.text("one", "mine")
	v := s.view()
	require.Equal(t, []timeline.Lane{
		{SessionID: "s", AgentType: "a"},
		{SessionID: "one", AgentType: "of s", ParentSessionID: "s", ParentToolCallID: "a", Depth: 1},
		{SessionID: "deep", AgentType: "of one", ParentSessionID: "one", ParentToolCallID: "c", Depth: 2},
		{SessionID: "two", AgentType: "of s", ParentSessionID: "s", ParentToolCallID: "b", Depth: 1},
	}, v.Lanes)
	call := only(t, v, timeline.KindChild)
	require.Equal(t, []any{from, "helper", timeline.StatusWaiting}, []any{call.From, call.Label, call.Status})
	require.Equal(t, "one", only(t, v, timeline.KindText).Lane)
	s.run = "r1"
	s.result("s", "st", "a", "")
	require.Equal(t, timeline.StatusDone, only(t, s.view(), timeline.KindChild).Status)
}

// What a crashed process left is truncated and stays to be seen.
func TestACrash(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.claim("node-1", 1)
	step := s.step("s", "st")
	s.text("s", "half", "a", "word")
	s.claim("node-2", 2)
	by := s.truncate(eventlog.ResyncCrashRecovery, eventlog.Range{AgentID: "s", From: step, To: step + 6})
	s.step("s", "st")
	s.text("s", "whole")
	v := s.view()
	text := spans(v, timeline.KindText)
	require.Len(t, text, 2)
	require.Equal(t, []any{true, by, timeline.StatusInterrupted, false, 3}, []any{
		text[0].Truncated, text[0].TruncatedBy, text[0].Status, text[0].Open, text[0].Records,
	})
	require.False(t, text[1].Truncated)
	require.Equal(t, "node-2", only(t, v, timeline.KindRun).Node)
	require.True(t, only(t, v, timeline.KindStep).Open, "another attempt is no other step")
	require.Equal(t, "node-1", marks(v, timeline.MarkClaimed)[0].Label)
	require.Equal(t, "node-2, attempt 2, from node-1", marks(v, timeline.MarkTakeover)[0].Label)
	require.Equal(t, by, marks(v, timeline.MarkTruncated)[0].Sequence)
}

// A run that another node requests and claims because nobody answers is a
// takeover; one that continues with what has ended is none.
func TestTakeovers(t *testing.T) {
	t.Parallel()
	for ended, takeovers := range map[bool]int{true: 0, false: 1} {
		s := new(story)
		s.begin("s")
		s.claim("node-1", 1)
		if ended {
			s.end("s", fact.RunStopped)
		}
		lived := s.records[len(s.records)-1].Sequence
		s.run = "r2"
		s.say("s", "hurry")
		s.request("s", "r2", fact.ModeWithMessage)
		s.claim("node-2", 1)
		v := s.view()
		require.Equal(t, lived, spans(v, timeline.KindRun)[0].To, "what it has not written says nothing of how long it lived")
		require.Len(t, marks(v, timeline.MarkTakeover), takeovers)
		require.Len(t, marks(v, timeline.MarkClaimed), 2-takeovers)
		require.Equal(t, timeline.StatusInterrupted, spans(v, timeline.KindRun)[0].Status)
	}
}

func TestPartOfASpanIsTruncated(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.step("s", "st")
	s.text("s", "ab", "cd", "ef", "gh")
	text := only(t, s.view(), timeline.KindText)
	by := s.truncate(eventlog.ResyncRetry, eventlog.Range{AgentID: "s", From: text.From + 2, To: text.From + 4})
	v := s.view()
	parts := spans(v, timeline.KindText)
	require.Len(t, parts, 3)
	require.Equal(t, text.ID, parts[0].ID)
	for i, want := range []struct {
		from, to  uint64
		chars     int
		truncated bool
	}{{text.From, text.From, 2, false}, {text.From + 2, text.From + 4, 4, true}, {text.From + 6, text.From + 6, 2, false}} {
		require.Equal(t, []any{want.from, want.to, want.chars, want.truncated},
			[]any{parts[i].From, parts[i].To, parts[i].Chars, parts[i].Truncated}, "part %d", i)
		require.Equal(t, by, parts[i].Updated)
	}
}

// What waited where a rollback goes back to waits again.
func TestARollback(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.step("s", "st")
	s.turn("s", "st", "a")
	s.wait("s", "st", "a", fact.PendingApproval)
	back := s.end("s", fact.RunClientTool)
	s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.ResultSubmitted{ToolCallID: "a", Kind: fact.SubmitApproval, Approved: true, Base: b}
	})
	s.request("s", "r2", fact.ModeContinue)
	s.start("s", "a")
	s.result("s", "st", "a", "")
	s.say("s", "and then")
	by := s.rollback(back)
	v := s.view()
	var open []timeline.Kind
	for _, span := range v.Spans {
		if span.Open {
			open = append(open, span.Kind)
		}
		require.Equal(t, span.From > back && span.From < by, span.Truncated, "%+v", span)
		require.Equal(t, span.From == by, span.Open, "it waits from now on, %+v", span)
	}
	require.ElementsMatch(t, []timeline.Kind{timeline.KindApproval, timeline.KindSuspended}, open)
	require.Equal(t, by, marks(v, timeline.MarkRollback)[0].Sequence)
	s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.ResultSubmitted{ToolCallID: "a", Kind: fact.SubmitApproval, Base: b}
	})
	for _, wait := range spans(s.view(), timeline.KindApproval) {
		require.False(t, wait.Open)
	}
}

// A fork whose calls wait for somebody is paused; one that somebody has to continue is interrupted.
func TestAForkThatWaits(t *testing.T) {
	t.Parallel()
	of := new(story)
	of.begin("s")
	of.step("s", "st")
	before := projector.Fold(of.records...)
	of.turn("s", "st", "a")
	of.wait("s", "st", "a", fact.PendingApproval)
	for want, tree := range map[string]*projector.Tree{"interrupted": before, "paused": projector.Fold(of.records...)} {
		state, err := projector.ForkState(tree, "f")
		require.NoError(t, err)
		s := new(story)
		s.fact("f", func(b fact.Base) fact.Fact {
			return &fact.SessionForked{FromSessionID: "s", FromSequence: tree.Head, State: state, Base: b}
		})
		waits := only(t, s.view(), timeline.KindSuspended)
		require.Equal(t, []any{want, true}, []any{waits.Label, waits.Open})
	}
}

func TestAModelCallThatIsRetried(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.step("s", "st")
	s.text("s", "hal")
	failed := s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.ModelFailed{RunID: "r1", StepID: "st", Attempt: 1, Code: "overloaded", Error: "try later", Retryable: true, Base: b}
	})
	v := s.view()
	require.Equal(t, timeline.StatusFailed, only(t, v, timeline.KindText).Status)
	require.Equal(t, []any{failed, "attempt 1: overloaded: try later"},
		[]any{marks(v, timeline.MarkError)[0].Sequence, marks(v, timeline.MarkError)[0].Label})
}

func TestWhatComesFromOutside(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.text("s", "a", "b")
	s.chunk("s", "", func(b eventlog.Base) eventlog.Chunk {
		return &eventlog.CustomEvent{EventName: "e", Data: []byte(`1`), Base: b}
	})
	s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.StreamEnd{StreamID: "s", Timestamp: b.Timestamp}
	})
	v := s.view()
	outside := only(t, v, timeline.KindOutside)
	require.Equal(t, []any{3, 2, false}, []any{outside.Records, outside.Chars, outside.Open})
	require.Equal(t, "completed", marks(v, timeline.MarkEnded)[0].Label)
	require.Len(t, v.Spans, 1)
}

func TestStops(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.claim("node-1", 1)
	s.step("s", "st")
	s.text("s", "so")
	for range 2 { // the second time who drives the run has heard
		s.fact("s", func(b fact.Base) fact.Fact {
			return &fact.InterruptRequested{RunID: "r1", Kind: fact.StopInterrupt, Reason: "lunch", Base: b}
		})
	}
	s.end("s", fact.RunStopped)
	v := s.view()
	require.Len(t, marks(v, timeline.MarkInterrupt), 1)
	require.Equal(t, "lunch", marks(v, timeline.MarkInterrupt)[0].Label)
	require.Equal(t, timeline.StatusInterrupted, only(t, v, timeline.KindRun).Status)
	require.Equal(t, []any{"interrupted", true}, []any{only(t, v, timeline.KindSuspended).Label, only(t, v, timeline.KindSuspended).Open})
	s.request("s", "r2", fact.ModeContinue)
	v = s.view()
	require.False(t, only(t, v, timeline.KindSuspended).Open)
	require.Equal(t, timeline.StatusOpen, only(t, v, timeline.KindStep).Status, "it continues")
}

func TestAParkedRecordIsMarked(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	bad := s.result("s", "no such step", "a", "")
	m := marks(s.view(), timeline.MarkParked)
	require.Len(t, m, 1)
	require.Equal(t, bad, m[0].Sequence)
	require.Contains(t, m[0].Label, "tool_result: step no such step is not open")
}

// Of what an agent was reminded a timeline says how much, and of nothing nothing.
func TestMarksOfMemories(t *testing.T) {
	for want, f := range map[string]fact.MemoryRecalled{
		"1 memory":          {Memories: []fact.RecalledMemory{{MemoryID: "m", Content: "x"}}},
		"2 memories":        {Memories: []fact.RecalledMemory{{MemoryID: "m", Content: "x"}, {MemoryID: "n", Content: "y"}}},
		"failed: it is out": {Error: "it is out"},
		"":                  {Query: "go"},
	} {
		s := new(story)
		s.begin("s")
		f.RunID = "r1"
		at := s.fact("s", func(b fact.Base) fact.Fact { f.Base = b; return &f })
		var marks []timeline.Mark
		if want != "" {
			marks = []timeline.Mark{{Sequence: at, Kind: timeline.MarkRecalled, Lane: "s", At: s.now() - 1_000, Label: want, Updated: at}}
		}
		require.ElementsMatch(t, marks, s.view().Marks)
	}
}
