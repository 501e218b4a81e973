package timeline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/timeline"
	"github.com/helixd/helixd/projector/timeline/timelinetest"
)

// frozen returns a record of every type that there is, with every field set.
func frozen(t testing.TB) (all []eventlog.Entry) {
	for _, kind := range []eventlog.Kind{eventlog.KindChunk, eventlog.KindFact} {
		files, err := filepath.Glob("../../eventlog/testdata/wire/" + string(kind) + "/*.json")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			payload, err := os.ReadFile(file)
			require.NoError(t, err)
			var typ struct{ Type string }
			require.NoError(t, json.Unmarshal(payload, &typ), file)
			all = append(all, eventlog.Entry{Envelope: eventlog.Envelope{Kind: kind, Type: typ.Type}, Payload: payload})
		}
	}
	return all
}

func TestEveryTypeOfRecordLeavesATimeline(t *testing.T) {
	t.Parallel()
	rnd, all := testkit.Random(t), frozen(t)
	types := map[string]bool{}
	for _, e := range all {
		types[e.Type] = true
	}
	for _, typ := range append(eventlog.ChunkTypes(), eventlog.FactTypes()...) {
		require.True(t, types[typ], "there is no frozen %s", typ)
	}
	for range testkit.Times(100) {
		var records []eventlog.Record
		for i := range 60 {
			e := all[rnd.IntN(len(all))]
			e.Agent = []string{"s", "s", "child", "other", ""}[rnd.IntN(5)]
			if e.Agent == "" && rnd.IntN(2) == 0 {
				e.Kind, e.Type = "", "" // published by somebody else
			}
			e.Run, e.Call = []string{"", "r"}[rnd.IntN(2)], []string{"", "", "c"}[rnd.IntN(3)]
			if rnd.IntN(15) == 0 {
				e.Payload = []byte([]string{`{`, `null`, ``, `{"type":"x"}`, "\xff"}[rnd.IntN(5)])
			}
			records = append(records, eventlog.Record{Sequence: uint64(3*i + 1), Entry: e})
		}
		timelinetest.Laws(t, rnd, records)
	}
}

func TestAnyStoryLeavesATimeline(t *testing.T) {
	t.Parallel()
	rnd := testkit.Random(t)
	for range testkit.Times(100) {
		timelinetest.Laws(t, rnd, randomStory(rnd, 120))
	}
}

// randomStory mixes what belongs together with what makes no sense where it
// stands.
func randomStory(rnd *rand.Rand, n int) []eventlog.Record {
	s := new(story)
	s.begin("s")
	s.claim("node-1", 1)
	for range n {
		agent := []string{"s", "s", "s", "child"}[rnd.IntN(4)]
		step, call := fmt.Sprint("st", rnd.IntN(3)), fmt.Sprint("c", rnd.IntN(3))
		any := func() uint64 { return uint64(1 + rnd.IntN(2*len(s.records)+2)) }
		switch rnd.IntN(22) {
		case 0, 1:
			s.step(agent, step)
		case 2, 3, 4, 5:
			s.text(agent, "a", "é", "語x")
		case 6:
			s.chunk(agent, "", func(b eventlog.Base) eventlog.Chunk {
				return &eventlog.Thinking{Content: "hm", IsComplete: rnd.IntN(2) == 0, Base: b}
			})
		case 7:
			s.chunk(agent, "", func(b eventlog.Base) eventlog.Chunk {
				return &eventlog.ToolArgStreamStart{ToolCallID: call, ToolName: "t", Base: b}
			})
			s.chunk(agent, "", func(b eventlog.Base) eventlog.Chunk {
				return &eventlog.ToolArgStreamDelta{ToolCallID: call, Delta: "{}", Base: b}
			})
		case 8:
			s.turn(agent, step, call)
		case 9:
			s.start(agent, call)
		case 10:
			s.chunk(agent, call, func(b eventlog.Base) eventlog.Chunk {
				return &eventlog.CustomEvent{EventName: "e", Data: json.RawMessage(`1`), Base: b}
			})
		case 11:
			s.result(agent, step, call, []string{"", "broke"}[rnd.IntN(2)])
		case 12:
			s.wait(agent, step, call, []fact.PendingKind{fact.PendingApproval, fact.PendingClient, fact.PendingChild}[rnd.IntN(3)])
		case 13:
			s.fact(agent, func(b fact.Base) fact.Fact {
				return &fact.ResultSubmitted{ToolCallID: call, Kind: fact.SubmitApproval, Approved: rnd.IntN(2) == 0, Base: b}
			})
		case 14:
			s.chunk(agent, "", func(b eventlog.Base) eventlog.Chunk {
				return &eventlog.StepCommitted{RunID: s.run, StepID: step, CheckpointID: "cp", Base: b}
			})
		case 15:
			s.request(agent, fmt.Sprint("r", rnd.IntN(50)), []fact.RunMode{fact.ModeStart, fact.ModeContinue}[rnd.IntN(2)])
		case 16:
			s.end(agent, []fact.RunStatus{fact.RunCompleted, fact.RunFailed, fact.RunStopped, fact.RunClientTool}[rnd.IntN(4)])
		case 17:
			from := any()
			scope := []eventlog.Scope{eventlog.ScopeRun, eventlog.ScopeContent}[rnd.IntN(2)]
			s.truncate(eventlog.ResyncRetry, eventlog.Range{
				AgentID: agent, CallID: []string{"", call}[rnd.IntN(2)], From: from, To: from + uint64(rnd.IntN(60)), Scope: scope,
			})
		case 18:
			s.rollback(any())
		case 19:
			s.say(agent, "and")
		case 20:
			run := s.run
			s.run = ""
			s.text(agent, "outside")
			s.run = run
		case 21:
			s.claim(fmt.Sprint("node-", rnd.IntN(2)), 1+rnd.IntN(2))
		}
	}
	return s.records
}

// rollback goes back to a record, or to where none is.
func (s *story) rollback(after uint64) uint64 {
	restore, err := projector.RestoreAt(projector.Fold(s.records[:min(after/2, uint64(len(s.records)))]...))
	if err != nil {
		panic(err)
	}
	head := uint64(2 * len(s.records))
	after = min(after/2*2, head)
	var ranges []eventlog.Range
	for _, agent := range []string{"s", "child"} {
		if after < head {
			ranges = append(ranges, eventlog.Range{AgentID: agent, From: after + 1, To: head, Scope: eventlog.ScopeAll})
		}
	}
	s.fact("s", func(b fact.Base) fact.Fact {
		return &fact.RunClaimed{RunID: "rollback-x", Node: "rollback", Attempt: 1, Base: b}
	})
	return s.fact("s", func(b fact.Base) fact.Fact {
		return &eventlog.Truncated{
			Reason: eventlog.ResyncRollback, Ranges: ranges, AtSequence: max(head, after), AfterSequence: after, Restore: restore, Base: b,
		}
	})
}

func FuzzApply(f *testing.F) {
	for _, e := range frozen(f) {
		f.Add(string(e.Kind), e.Type, e.Payload)
	}
	f.Fuzz(func(t *testing.T, kind, typ string, payload []byte) {
		s := new(story)
		s.begin("s")
		s.step("s", "step-1")
		s.text("s", "a", "b")
		e := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.Kind(kind), Type: typ, Agent: "s", Run: s.run}, Payload: payload}
		s.put(e, nil)
		s.put(e, nil)
		s.text("s", "c")
		timelinetest.Laws(t, rand.New(rand.NewPCG(1, 2)), s.records)
	})
}

func TestWhatATimelineQuotesIsShort(t *testing.T) {
	t.Parallel()
	s := new(story)
	s.begin("s")
	s.say("s", strings.Repeat("é", 5_000)+"\nmore")
	v := timelinetest.Fold(s.records...).Since(0)
	require.Equal(t, strings.Repeat("é", timeline.MaxLabel-1)+"…", v.Spans[len(v.Spans)-1].Label)
}
