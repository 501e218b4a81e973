package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/textstream"
	"github.com/helixd/helixd/projector/uimessage"
)

const feedRoot, feedChild = "s", "s-sub-a"

// feedRecords are chunks and facts as a log has them, from the sequence 11 on.
func feedRecords(t *testing.T, all ...any) (records []eventlog.Record) {
	for i, one := range all {
		var e eventlog.Entry
		var err error
		switch one := one.(type) {
		case eventlog.Chunk:
			e, err = eventlog.NewChunk(one, eventlog.Labels{Run: "r"})
		case fact.Fact:
			e, err = eventlog.NewFact(feedRoot, one, eventlog.Labels{Run: "r"})
		}
		require.NoError(t, err)
		records = append(records, eventlog.Record{Sequence: uint64(11 + i), Time: time.Unix(int64(i), 0), Entry: e})
	}
	return records
}

func feedEncoder(textParts bool) encoder {
	if textParts {
		return textstream.New(textstream.Options{Root: feedRoot})
	}
	return uimessage.NewEncoder(uimessage.EncoderOptions{Root: feedRoot, MessageID: "m"})
}

// fed is an event of a stream, and the sequence of its record; 0: none.
type fed struct {
	web.Event
	of uint64
}

// feedLive returns the events of a client that was there from the beginning.
func feedLive(textParts bool, records []eventlog.Record) (got []fed) {
	var of uint64
	f := &feed{at: start{encoder: feedEncoder(textParts), after: web.Position{Sequence: 10}}, chat: &Options{}}
	f.to, f.yield = deliveryTo(f.at.after), func(e web.Event, _ error) bool { got = append(got, fed{e, of}); return true }
	f.start()
	for _, r := range records {
		of = r.Sequence
		f.live(r, nil, nil)
	}
	return got
}

// feedResumed returns the events of a client that resumes from a position when all
// records are there.
func feedResumed(t *testing.T, textParts bool, records []eventlog.Record, from string) (got []web.Event) {
	after := web.Position{Sequence: 10}
	if from != "" {
		var err error
		after, err = web.ParsePosition("id", from)
		require.NoError(t, err)
	}
	var dead eventlog.Truncations
	for _, r := range records {
		require.NoError(t, dead.Add(r))
	}
	f := &feed{at: start{encoder: feedEncoder(textParts), after: after, dead: dead}, chat: &Options{}}
	f.to, f.yield = deliveryTo(after), func(e web.Event, _ error) bool { got = append(got, e); return true }
	for _, r := range records {
		f.past(r, nil)
	}
	f.start()
	return got
}

// dataOf are the frames of events, except that of a stream_resync: only clients that have
// truncated frames get it.
func dataOf(events []web.Event) (all []string) {
	for _, e := range withoutResync(events) {
		all = append(all, string(e.Data))
	}
	return all
}

func withoutResync(events []web.Event) []web.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e web.Event) bool { return isResync(e) })
}

func isResync(e web.Event) bool { return bytes.Contains(e.Data, []byte(`"data-stream-resync"`)) }

// surviving are the frames of live events that a client gets, too, that comes
// later: not those of truncated records, nor how their blocks end.
func surviving(records []eventlog.Record, live []fed, later []string) (all []string) {
	var dead eventlog.Truncations
	markers := map[uint64]bool{}
	for _, r := range records {
		_ = dead.Add(r)
		markers[r.Sequence] = r.Type == "truncated"
	}
	for _, e := range live {
		isDead := e.of > 0 && dead.Covers(records[e.of-11])
		if !isDead && !isResync(e.Event) && (!markers[e.of] || slices.Contains(later, string(e.Data))) {
			all = append(all, string(e.Data))
		}
	}
	return all
}

// truncations are streams with records that are truncated: what a client got of
// them while they counted, and what one gets that comes later.
func truncations(t *testing.T) map[string][]eventlog.Record {
	of := func(agent string) eventlog.Base {
		return eventlog.Base{AgentID: agent, AgentType: "writer", Timestamp: 1, Step: 1}
	}
	text := func(agent, s string) eventlog.Chunk { return &eventlog.TextDelta{Delta: s, Base: of(agent)} }
	input := func(agent, call string) eventlog.Chunk {
		return &eventlog.ToolArgStreamStart{ToolCallID: call, ToolName: "t", Base: of(agent)}
	}
	marker := func(ranges ...eventlog.Range) fact.Fact {
		return &eventlog.Truncated{Reason: eventlog.ResyncRetry, AtSequence: 10, Ranges: ranges}
	}
	step := &eventlog.StepStart{Base: of(feedRoot)}
	return map[string][]eventlog.Record{
		"two open blocks of what is truncated": feedRecords(t, step,
			text(feedRoot, "half"), input(feedRoot, "c"), input(feedRoot, "d"),
			marker(eventlog.Range{AgentID: feedRoot, From: 12, To: 14}),
			text(feedRoot, "whole"), text(feedRoot, "more")),
		"open blocks of two agents": feedRecords(t, step,
			text(feedRoot, "half"), text(feedChild, "hers"), input(feedChild, "c"),
			marker(eventlog.Range{AgentID: feedRoot, From: 12, To: 14}, eventlog.Range{AgentID: feedChild, From: 12, To: 14}),
			text(feedRoot, "whole"), text(feedChild, "all"), input(feedRoot, "e"), text(feedRoot, "more")),
		"blocks that survive": feedRecords(t, step,
			text(feedRoot, "kept"), input(feedRoot, "c"), input(feedChild, "d"),
			input(feedChild, "e"), input(feedRoot, "f"),
			marker(eventlog.Range{AgentID: feedChild, From: 15, To: 15}, eventlog.Range{AgentID: feedRoot, From: 16, To: 16}),
			text(feedRoot, "whole"), text(feedChild, "all")),
		"a crash": feedRecords(t, step,
			text(feedRoot, "half"), input(feedRoot, "b"),
			marker(eventlog.Range{AgentID: feedRoot, From: 12, To: 13}),
			&eventlog.StepDiscarded{RunID: "r", StepID: "p", Reason: "crash", Base: of(feedRoot)}, step,
			text(feedRoot, "whole"), input(feedRoot, "c"), text(feedRoot, "more")),
		"a crash that clients are notified of": feedRecords(t, step,
			text(feedRoot, "half"), input(feedRoot, "b"),
			&eventlog.RunResumed{RunID: "r", Mode: "continue", Base: of(feedRoot)},
			marker(eventlog.Range{AgentID: feedRoot, From: 12, To: 13}),
			&eventlog.StreamResync{Reason: eventlog.ResyncCrashRecovery, Base: of(feedRoot)},
			step, text(feedRoot, "whole"), input(feedRoot, "c"), text(feedRoot, "more")),
		"twice": feedRecords(t, step,
			text(feedRoot, "half"), input(feedRoot, "c"), input(feedRoot, "d"),
			marker(eventlog.Range{AgentID: feedRoot, From: 12, To: 14}),
			text(feedRoot, "again"), input(feedRoot, "e"), input(feedRoot, "f"),
			marker(eventlog.Range{AgentID: feedRoot, From: 16, To: 18}),
			text(feedRoot, "whole"), input(feedRoot, "g"), text(feedRoot, "more")),
	}
}

// TestAChatCutAroundATruncation: after whichever frame a client is cut off, before,
// in or after what is truncated, it gets each frame that survives, once.
func TestAChatCutAroundATruncation(t *testing.T) {
	for _, textParts := range []bool{true, false} {
		for name, records := range truncations(t) {
			t.Run(fmt.Sprint(name, ", text parts: ", textParts), func(t *testing.T) {
				later := feedResumed(t, textParts, records, "")
				whole := dataOf(later)
				for _, d := range whole {
					require.True(t, json.Valid([]byte(d)))
				}
				for n := 1; n <= len(records); n++ { // the connection that was cut had so many records
					live := feedLive(textParts, records[:n])
					for cut := 1; cut < len(live); cut++ {
						id := live[cut].ID
						had := surviving(records, live[:cut+1], whole)
						require.Equal(t, whole, append(had, dataOf(feedResumed(t, textParts, records, id.String()))...), "live, cut after %s of %d records", id, n)
					}
				}
				for cut := 1; cut < len(later); cut++ {
					rest := withoutResync(feedResumed(t, textParts, records, later[cut].ID.String()))
					require.Equal(t, append([]web.Event(nil), later[cut+1:]...), rest, "cut after %s", later[cut].ID)
				}
			})
		}
	}
}

// TestAChatCutAroundARollback: the last turn is rolled back. A client that was cut off in the turn
// before gets the rest of that, once; one that has frames of the last turn gets stream_resync.
// Positions are those that they were before the last turn.
func TestAChatCutAroundARollback(t *testing.T) {
	of := eventlog.Base{AgentID: feedRoot, AgentType: "writer", Timestamp: 1, Step: 1}
	turn := func(text string) []any {
		return []any{&eventlog.StepStart{Base: of}, &eventlog.TextDelta{Delta: text, Base: of},
			&fact.RunEnded{RunID: "r", Status: fact.RunCompleted, Base: fact.Base{SessionID: feedRoot, Timestamp: 1}}}
	}
	records := feedRecords(t, slices.Concat(turn("kept"), turn("gone"), []any{
		&eventlog.Truncated{Reason: eventlog.ResyncRollback, AtSequence: 16, AfterSequence: 13, Ranges: []eventlog.Range{
			{AgentID: feedRoot, From: 14, To: 16, Scope: eventlog.ScopeAll},
		}, Base: fact.Base{SessionID: feedRoot, Timestamp: 1}},
		&eventlog.StreamResync{Reason: eventlog.ResyncRollback, Base: of},
		&eventlog.SourceURL{SourceID: "later", URL: "u", Base: of},
	})...)
	later := records
	records = records[:8]
	ended := func(records []eventlog.Record, after web.Position) (got []web.Event) {
		at := start{encoder: feedEncoder(false), after: after, end: &uimessage.Ending{Outcome: uimessage.Completed}, stopped: 13}
		for _, r := range records {
			require.NoError(t, at.dead.Add(r))
		}
		f := &feed{at: at, to: deliveryTo(after), chat: &Options{}}
		f.yield = func(e web.Event, _ error) bool { got = append(got, e); return true }
		for _, r := range records {
			f.past(r, nil)
		}
		f.start()
		f.finish(f.last.record.Sequence, f.last.frames, *at.end)
		return got
	}
	first, whole := ended(records[:3], web.Position{Sequence: 10}), ended(records, web.Position{Sequence: 10})
	require.Equal(t, first, whole)
	for cut := 1; cut < len(first)-2; cut++ { // start and [DONE] have no id; a client that has the rest gets 204
		require.Equal(t, dataOf(whole[cut+1:]), dataOf(ended(records, first[cut].ID)), "cut after %s", first[cut].ID)
	}
	whole = ended(later, web.Position{Sequence: 10})
	for cut := 1; cut < len(whole)-2; cut++ {
		require.Equal(t, dataOf(whole[cut+1:]), dataOf(ended(later, whole[cut].ID)), "cut after %s", whole[cut].ID)
	}
	last := ended(records[3:6], web.Position{Sequence: 13})
	for cut := 1; cut < len(last)-1; cut++ {
		rest := ended(records, last[cut].ID)
		require.True(t, slices.ContainsFunc(rest, isResync), "cut after %s: %v", last[cut].ID, dataOf(rest))
		require.Contains(t, dataOf(rest), `{"type":"finish","finishReason":"stop"}`)
	}
}
