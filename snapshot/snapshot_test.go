package snapshot_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
	"github.com/helixd/helixd/snapshot"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// aRun returns the records of a finished run with reasoning, text, a tool and
// state.
func aRun(t *testing.T) []eventlog.Record {
	log := memory.New()
	tool := agentloop.NewTool("look", "", func(ctx context.Context, c *agentloop.Call, _ struct{}) (string, error) {
		if err := c.Emit(ctx, "progress", 1); err != nil {
			return "", err
		}
		return "fog", agentloop.UpdateState(c, func(s *map[string]any) error {
			(*s)["sky"] = "fog"
			return nil
		})
	})
	loop, err := engine.New(log, []agentloop.Agent{{Name: "a", Tools: []agentloop.Tool{tool}, Model: scripted.New([]scripted.Turn{
		{Reasoning: "I look first.", Text: "One moment.", ToolCalls: []scripted.Call{{ID: "c", Name: "look", Arguments: json.RawMessage(`{}`)}}},
		{Text: "It is foggy today."},
	}, nil)}}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{
		{Content: "Weather?", Files: []fact.MessageFile{{Data: "data:,x", MediaType: "text/plain"}}, Metadata: json.RawMessage(`{"source":"web"}`)},
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var records []eventlog.Record
	for r, err := range log.Follow(ctx, "s", 0) {
		require.NoError(t, err)
		records = append(records, r)
		if r.Type == "stream_end" {
			break
		}
	}
	return records
}

// upTo is a store on a log that holds the first n of the records.
func upTo(t *testing.T, records []eventlog.Record, n int) *snapshot.Store {
	log := memory.New()
	entries := make([]eventlog.Entry, n)
	for i := range n {
		entries[i] = records[i].Entry
	}
	_, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	return snapshot.New(log, nil)
}

func marshal(t *testing.T, v any) string {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func TestASnapshotIsExactlyWhatItsSequenceCovers(t *testing.T) {
	records := aRun(t)
	var firstOfAnswer uint64
	for _, r := range records {
		if r.Type == "step_start" && firstOfAnswer == 0 {
			firstOfAnswer = r.Sequence
		}
	}
	for n := 1; n <= len(records); n++ {
		states := upTo(t, records, n)
		head := records[n-1].Sequence
		for _, partial := range []bool{false, true} {
			s, err := states.Take(t.Context(), "s", snapshot.Options{IncludePartialContent: partial})
			require.NoError(t, err)
			covered := projector.Fold(records[:s.StreamSequence]...) // sequences of this log are 1, 2, 3, …
			require.Equal(t, marshal(t, uimessage.Render(covered, nil)), marshal(t, s.Messages))
			require.JSONEq(t, covered.CustomState.String(), string(s.State))

			finished := n == len(records) || records[n-1].Type == "run_ended"
			switch {
			case partial || finished || head < firstOfAnswer:
				require.Equal(t, head, s.StreamSequence)
			default:
				require.Equal(t, firstOfAnswer-1, s.StreamSequence, "an unfinished answer is left out whole")
				require.Len(t, s.Messages, 1)
				require.JSONEq(t, `{}`, string(s.State), "the state is of the same sequence")
			}
			if n == len(records) {
				require.Equal(t, eventlog.StreamCompleted, s.Status)
			} else {
				require.Equal(t, eventlog.StreamActive, s.Status)
			}
		}
	}
}

func TestPartialContentIsWhatHasStreamed(t *testing.T) {
	records := aRun(t)
	text := ""
	for n := 1; n < len(records); n++ {
		r := records[n-1]
		if r.Type == "run_ended" {
			break
		}
		if r.Type == "text_delta" {
			c, err := r.Chunk()
			require.NoError(t, err)
			text += c.(*eventlog.TextDelta).Delta
		}
		states := upTo(t, records, n)
		s, err := states.Take(t.Context(), "s", snapshot.Options{IncludePartialContent: true})
		require.NoError(t, err)
		shown := ""
		for _, m := range s.Messages {
			if m.Role != "assistant" {
				continue
			}
			require.Equal(t, "msg-1-partial", m.ID)
			for _, p := range m.Parts {
				if t, ok := p.(uimessage.Text); ok {
					shown += t.Text
				}
			}
		}
		require.Equal(t, text, shown, "at %d %s", n, r.Type)
	}
	require.Equal(t, "One moment.It is foggy today.", text)
}

func TestFinishedMessages(t *testing.T) {
	records := aRun(t)
	states := upTo(t, records, len(records))
	s, err := states.Take(t.Context(), "s", snapshot.Options{})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"id":"msg-0","role":"user","metadata":{"source":"web"},"parts":[
			{"type":"text","text":"Weather?"},{"type":"file","url":"data:,x","mediaType":"text/plain"}]},
		{"id":"msg-1","role":"assistant","parts":[
			{"type":"step-start"},
			{"type":"reasoning","text":"I look first.","state":"done"},
			{"type":"text","text":"One moment.","state":"done"},
			{"type":"tool-look","toolCallId":"c","state":"output-available","providerExecuted":true,"input":{},"output":"fog"},
			{"type":"data-progress","data":1},
			{"type":"step-start"},
			{"type":"text","text":"It is foggy today.","state":"done"}]}
	]`, marshal(t, s.Messages))
	require.JSONEq(t, `{"sky":"fog"}`, string(s.State))
}

func TestStateAtAnySequence(t *testing.T) {
	records := aRun(t)
	states := upTo(t, records, len(records))
	for n := range len(records) {
		at, err := states.At(t.Context(), "s", uint64(n))
		require.NoError(t, err)
		require.Equal(t, marshal(t, projector.Fold(records[:n]...)), marshal(t, at))
	}
	var ahead *eventlog.CursorAheadError
	_, err := states.At(t.Context(), "s", uint64(len(records)+1))
	require.ErrorAs(t, err, &ahead)
	_, err = states.At(t.Context(), "nobody", 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
