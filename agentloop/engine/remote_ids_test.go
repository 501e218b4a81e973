package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/textstream"
)

// toolCalls are the tool calls of a session's stream by id, each with the types
// of the chunks that it has, in order; and the agents that made them.
func (g *rig) toolCalls(session string) (chunks map[string][]string, agents map[string]string) {
	g.t.Helper()
	chunks, agents = map[string][]string{}, map[string]string{}
	for c, err := range eventlog.Chunks(eventlog.Effective(g.t.Context(), g.log, session, 0, 0)) {
		require.NoError(g.t, err)
		var call struct {
			ToolCallID, CallID string
		}
		raw, err := eventlog.EncodeChunk(c.Chunk)
		require.NoError(g.t, err)
		require.NoError(g.t, json.Unmarshal(raw, &call))
		id := cmp.Or(call.ToolCallID, call.CallID)
		if id == "" || c.Chunk.Type() == "tool_arg_stream_delta" {
			continue
		}
		agent := eventlog.BaseOf(c.Chunk).AgentID
		require.Equal(g.t, agent, cmp.Or(agents[id], agent), "call %s is of one agent", id)
		agents[id] = agent
		chunks[id] = append(chunks[id], c.Chunk.Type())
	}
	return chunks, agents
}

// toolIDs are the ids of the tool calls that a stream of TextStreamParts shows.
func (g *rig) toolIDs(session string) (ids []string) {
	g.t.Helper()
	e := textstream.New(textstream.Options{Root: session})
	for r, err := range eventlog.Effective(g.t.Context(), g.log, session, 0, 0) {
		require.NoError(g.t, err)
		for _, frame := range e.Encode(r) {
			var part struct{ Type, ToolCallID string }
			require.NoError(g.t, json.Unmarshal(frame, &part))
			if part.Type == "tool-call" {
				ids = append(ids, part.ToolCallID)
			}
		}
	}
	return ids
}

var (
	localCall = []string{"tool_arg_stream_start", "tool_arg_stream_end", "tool_start", "tool_end"}
	agentCall = []string{"tool_arg_stream_start", "tool_arg_stream_end", "tool_start", "subagent_start", "subagent_end", "tool_end"}
)

// looking looks twice, by calls of one id, and answers.
func looking() model.Model {
	look := scripted.Turn{ToolCalls: []scripted.Call{{ID: "c1", Name: "look", Arguments: json.RawMessage(`{}`)}}}
	return script(look, look, scripted.Turn{ToolCalls: []scripted.Call{
		{ID: "c2", Name: "__finish__", Arguments: json.RawMessage(`{"answer":"42"}`)},
	}})
}

func echo(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil }

// Two remote agents and their caller use the same ids.
func TestCallsOfRemoteAgentsHaveIdsOfTheirOwn(t *testing.T) {
	there := newServer(t, looking(), agentloop.Tool{Name: "look", Execute: echo})
	agent := there.caller(time.Minute)
	ask := func(id string) scripted.Call {
		return scripted.Call{ID: id, Name: "subagent__analyst", Arguments: json.RawMessage(`{"message":"what is it?"}`)}
	}
	agent.Tools = []agentloop.Tool{{Name: "look", Execute: echo}}
	agent.Model = script(scripted.Turn{ToolCalls: []scripted.Call{ask("c1"), ask("c2")}},
		scripted.Turn{ToolCalls: []scripted.Call{{ID: "c1-2", Name: "look", Arguments: json.RawMessage(`{}`)}}}, scripted.Turn{Text: "It is told."})
	here := newRig(t, agent)
	here.start("s", "caller", "go")
	require.Equal(t, projector.SessionCompleted, here.ended("s").Status)

	chunks, agents := here.toolCalls("s")
	made := map[string]int{}
	for id, types := range chunks {
		made[agents[id]]++
		want := localCall
		if id == "c1" || id == "c2" {
			want = agentCall
		}
		require.Equal(t, want, types, "call %s", id)
	}
	require.Equal(t, map[string]int{"s": 3, "s-remote-c1": 3, "s-remote-c2": 3}, made)
	ids := here.toolIDs("s")
	require.Len(t, ids, 9)
	require.Len(t, chunks, 9)
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), 9, "each call of the stream has its own id")

	state := stateOf(t, here.log, "s")
	for _, child := range []string{"s-remote-c1", "s-remote-c2"} {
		theirs := map[string]bool{}
		for _, m := range stateOf(t, there.log, child).Messages {
			for _, p := range m.Parts {
				if p.ToolCall != nil {
					theirs[p.ToolCall.ID] = true
				}
			}
		}
		for _, c := range state.Get(child).RemoteCalls {
			require.True(t, theirs[c.RemoteID], "the log knows how the server calls it")
			require.Equal(t, child, agents[c.ID])
			require.True(t, c.Over)
			delete(theirs, c.RemoteID)
			_, err := here.loop.Submit(t.Context(), engine.Submission{
				SessionID: "s", ToolCallID: c.ID, Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
			})
			require.ErrorIs(t, err, agentloop.ErrAlreadyCompleted)
		}
		require.Empty(t, theirs)
	}
}

// A process that continues a remote stream keeps the ids of its calls.
func TestARemoteCallKeepsItsIdBeyondAProcess(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	there := newServer(t, looking(), agentloop.Tool{Name: "look", Execute: func(ctx context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
		if c.ID == "c1" {
			close(began)
		}
		select {
		case <-goOn:
			return 1, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	<-began
	here.until("s", func(r eventlog.Record) bool { return r.Type == "tool_start" && r.Agent == remoteID })
	here.loop.Stop()
	second := newRigOn(t, here.log, there.caller(time.Minute))
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	close(goOn)
	require.Equal(t, projector.SessionCompleted, second.ended("s").Status)
	chunks, _ := second.toolCalls("s")
	require.Len(t, chunks, 4)
	for id, types := range chunks {
		if id != "c1" {
			require.Equal(t, localCall, types, "call %s", id)
		}
	}

	released(t, second.loop)
	var at uint64
	for r, err := range second.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "call_suspended" {
			at = r.Sequence
		}
	}
	_, err = second.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: at})
	require.NoError(t, err)
	run, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	second.comes("s", func(t *projector.Tree) bool { return t.Over() && t.CurrentRun().RunID == run.RunID })
	again, _ := second.toolCalls("s")
	require.Len(t, again, 4)
	for id := range again {
		if id != "c1" {
			require.NotContains(t, chunks, id, "ids that a rollback truncated are not used again")
			require.Equal(t, localCall, again[id])
		}
	}
}

// sloppy is a server that calls all its calls c1, and its sub-agents by the id of
// somebody else's session.
type sloppy struct{ remote.Transport }

func (f sloppy) Stream(ctx context.Context, id string, from uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		for ev, err := range f.Transport.Stream(ctx, id, from) {
			if e, ok := ev.(remote.ChunkEvent); ok {
				switch c := e.Chunk.(type) {
				case *eventlog.ToolArgStreamStart:
					c.ToolCallID = "c1"
				case *eventlog.ToolArgStreamDelta:
					c.ToolCallID = "c1"
				case *eventlog.ToolArgStreamEnd:
					c.ToolCallID = "c1"
				case *eventlog.ToolStart:
					c.ToolCallID = "c1"
				case *eventlog.ToolEnd:
					c.ToolCallID = "c1"
				case *eventlog.CheckpointCreated:
					e.Chunk = &eventlog.SubAgentEnd{SubAgentType: "a", SubSessionID: "s", CallID: "c1", Base: c.Base}
					ev = e
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func TestAServerThatRepeatsIdsIsUnderstood(t *testing.T) {
	there := newServer(t, looking(), agentloop.Tool{Name: "look", Execute: echo})
	here := newRig(t, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport { return sloppy{tr} }))
	here.start("s", "caller", "go")
	require.Equal(t, projector.SessionCompleted, here.ended("s").Status)
	chunks, _ := here.toolCalls("s")
	require.Len(t, chunks, 4)
	for id, types := range chunks {
		if id != "c1" {
			require.Equal(t, []string{"tool_arg_stream_start", "tool_arg_stream_end", "tool_start", "tool_end", "subagent_end"}, types, "call %s", id)
		}
	}
	for c, err := range eventlog.Chunks(here.log.Read(t.Context(), "s", 0, 0)) {
		require.NoError(t, err)
		if end, ok := c.Chunk.(*eventlog.SubAgentEnd); ok {
			require.NotEqual(t, "s", end.SubSessionID, "it speaks for its own sub-agents only")
		}
	}
}

// misnamed is a server whose runs have names that no record takes.
type misnamed struct{ remote.Transport }

func (m misnamed) Start(ctx context.Context, req remote.StartRequest) (remote.Started, error) {
	started, err := m.Transport.Start(ctx, req)
	started.RunID = strings.Repeat("r", eventlog.MaxID+1)
	return started, err
}

func TestWhatARemoteAgentSaysFailsItsCallAtWorst(t *testing.T) {
	t.Run("the name of a run is no id", func(t *testing.T) {
		there := newServer(t, answering("hi"))
		here := newRig(t, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport { return misnamed{tr} }))
		here.start("s", "caller", "go")
		state := here.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
	})
	t.Run("chunks and the output are larger than a record", func(t *testing.T) {
		args, err := json.Marshal(map[string]string{"answer": strings.Repeat("x", narrowRecord)})
		require.NoError(t, err)
		there := newServer(t, script(scripted.Turn{Text: "hi", ToolCalls: []scripted.Call{{ID: "f", Name: "__finish__", Arguments: args}}}))
		here := newRigOn(t, narrow{memory.New()}, there.caller(time.Minute))
		here.start("s", "caller", "go")
		state := here.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Equal(t, agentloop.CodeToolFailed, state.Messages[2].ErrorCode)
		require.Contains(t, state.Messages[2].Error, "can't be recorded")
		require.Equal(t, "hi", here.said("s", remoteID))
		pairsOf(t, here.log, "s")
	})
}
