package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
)

// all returns what an iteration yields.
func all[T any](t *testing.T, items iter.Seq2[T, error]) (got []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		got = append(got, item)
	}
	return got
}

// exported returns a session's records, one a line.
func exported(t *testing.T, c *client.Client, session string) []byte {
	t.Helper()
	var lines bytes.Buffer
	for _, r := range all(t, c.Records(ctxOf(t), session, client.RecordRange{Dead: true})) {
		line, err := r.MarshalJSON()
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	return lines.Bytes()
}

func opens(body []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// uses has a use of each route.
var uses = map[string]func(*testing.T, context.Context, *server, *client.Client){
	"POST /start": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		req := client.StartRequest{
			SessionID: "s", AgentType: "echo", State: json.RawMessage(`{"n":"<1>"}`), Metadata: map[string]string{"k": "v"},
			Messages: []client.Message{{Content: "look", Metadata: json.RawMessage(`{"from":"me"}`), Files: []eventlog.MessageFile{
				{Data: "data:text/plain;base64,aGk=", MediaType: "text/plain", Filename: "hi.txt"},
			}}},
		}
		started, err := c.Start(ctx, req)
		require.NoError(t, err)
		require.Equal(t, "s", started.SessionID)
		require.NotEmpty(t, started.RunID)
		all(t, c.Stream(ctx, "s", 0))
		state, err := c.State(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, req.Metadata, state.State.Metadata)
		require.JSONEq(t, string(req.State), string(state.State.CustomState))
		require.Equal(t, req.Messages[0].Content, state.State.Messages[0].Content)
		require.Equal(t, req.Messages[0].Files, state.State.Messages[0].Files)
		require.Equal(t, string(req.Messages[0].Metadata), string(state.State.Messages[0].Metadata))
		_, err = c.Start(ctx, req)
		refused(t, err, 409, "ALREADY_COMPLETED")
		_, err = c.Start(ctx, client.StartRequest{SessionID: "s2", AgentType: "nobody", Messages: client.Text("hi")})
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /resume": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		goOn := func(r client.ResumeRequest) (client.Started, []string) {
			t.Helper()
			r.SessionID = "s"
			before, err := c.Status(ctx, "s")
			require.NoError(t, err)
			started, err := c.Resume(ctx, r)
			require.NoError(t, err)
			require.NotEqual(t, before.RunID, started.RunID)
			texts, _ := s.stream(c, "s", before.LatestSequence)
			return started, texts
		}
		_, last := s.started("s", "asker")
		require.Equal(t, client.EndEvent{Status: "paused"}, last)
		_, texts := goOn(client.ResumeRequest{})
		require.Empty(t, texts, "it still waits")
		_, texts = goOn(client.ResumeRequest{Mode: eventlog.ModeWithConfirmation, Approved: true})
		require.Equal(t, []string{"removed"}, texts)

		s.started("s3", "asker")
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s3", Mode: eventlog.ModeWithConfirmation}) // denied
		require.NoError(t, err)
		texts, _ = s.stream(c, "s3", 0)
		require.Equal(t, []string{"removed"}, texts)
		state, err := c.State(ctx, "s3")
		require.NoError(t, err)
		require.NotEmpty(t, state.State.Messages[2].Error, "the tool did not run")

		s.started("s4", "asker")
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Messages: client.Text("never mind")})
		require.NoError(t, err)
		all(t, c.Stream(ctx, "s4", 0))
		state, err = c.State(ctx, "s4")
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(state.State.Messages, func(m projector.Message) bool { return m.Content == "never mind" }))

		goOn(client.ResumeRequest{Mode: eventlog.ModeRetry, Turn: 1})
		page, err := c.Checkpoints(ctx, "s4", client.Paging{})
		require.NoError(t, err)
		require.NotEmpty(t, page.Items)
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Mode: eventlog.ModeFromCheckpoint, CheckpointID: page.Items[0].ID})
		require.NoError(t, err)
		all(t, c.Stream(ctx, "s4", 0))
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Mode: eventlog.ModeContinue, CheckpointID: "x"})
		refused(t, err, 400, "INVALID_REQUEST")
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Approved: true})
		refused(t, err, 400, "INVALID_REQUEST") // what goes with another mode is not lost on the way
	},
	"POST /interrupt": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		_, err := c.Start(ctx, client.StartRequest{SessionID: "s", AgentType: "gated", Messages: client.Text("hi")})
		require.NoError(t, err)
		require.NoError(t, c.Interrupt(ctx, "s", "lunch"))
		status, err := c.Status(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "interrupted", status.Status)
		refused(t, c.Interrupt(ctx, "nobody", ""), 404, "NOT_FOUND")
	},
	"POST /abort": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		require.NoError(t, c.Abort(ctx, "s", "enough"))
		_, last := s.stream(c, "s", 0)
		require.IsType(t, client.ErrorEvent{}, last)
		refused(t, c.Abort(ctx, "nobody", ""), 404, "NOT_FOUND")
	},
	"POST /submit-tool-result": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		summary, err := c.Session(ctx, "s")
		require.NoError(t, err)
		require.Len(t, summary.PendingToolCalls, 1)
		waits := summary.PendingToolCalls[0]
		answer := client.Submission{
			SessionID: "s", ToolCallID: waits.ToolCallID, Kind: eventlog.SubmitApproval, ApprovalID: waits.ApprovalID,
			Approved: true, Reason: "fine",
		}
		_, err = c.SubmitToolResult(ctx, client.Submission{
			SessionID: "s", ToolCallID: waits.ToolCallID, Kind: eventlog.SubmitClientResult, Result: json.RawMessage(`1`),
		})
		refused(t, err, 400, "INVALID_REQUEST")
		done, err := c.SubmitToolResult(ctx, answer)
		require.NoError(t, err)
		require.Equal(t, client.Submitted{Status: "accepted", SessionID: "s", ToolCallID: waits.ToolCallID, PendingToolCallIDs: []string{}}, done)
		done, err = c.SubmitToolResult(ctx, answer)
		require.NoError(t, err)
		require.Equal(t, "already_completed", done.Status)

		s.started("s2", "asker")
		done, err = c.SubmitToolResult(ctx, client.Submission{
			SessionID: "s2", ToolCallID: "rm", Kind: eventlog.SubmitClientResult, Error: "no",
		})
		require.NoError(t, err)
		require.Equal(t, "accepted", done.Status, "an approval takes an error as its answer")
	},
	"GET /sse": func(t *testing.T, _ context.Context, s *server, c *client.Client) {
		_, last := s.started("s", "echo")
		require.Equal(t, client.EndEvent{Output: json.RawMessage(`"hello, you there"`), State: json.RawMessage(`{"n":0}`)}, last)
	},
	"GET /status": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		started, _ := s.started("s", "echo")
		status, err := c.Status(ctx, "s")
		require.NoError(t, err)
		require.NotZero(t, status.LatestSequence)
		status.LatestSequence = 0
		require.Equal(t, client.Status{
			SessionID: "s", RunID: started.RunID, Status: "completed", StepCount: 1, StreamID: started.StreamID,
			Output: json.RawMessage(`"hello, you there"`), State: json.RawMessage(`{"n":0}`),
		}, status)
	},
	"GET /chat/{id}/snapshot": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		snap, err := c.Snapshot(ctx, "s", client.SnapshotOptions{IncludePartialContent: new(false)})
		require.NoError(t, err)
		require.Len(t, snap.Messages, 1)
		require.Equal(t, eventlog.StreamWaiting, snap.Status)
		more, err := c.Snapshot(ctx, "s", client.SnapshotOptions{IncludePartialContent: new(true)})
		require.NoError(t, err)
		require.Greater(t, more.StreamSequence, snap.StreamSequence)
		require.Len(t, more.Messages, 2)
		require.Equal(t, "assistant", more.Messages[1].Role)
		require.Contains(t, string(slices.Concat(more.Messages[1].Parts...)), `"tool-remove"`)
		waiting, err := c.Snapshot(ctx, "s", client.SnapshotOptions{})
		require.NoError(t, err)
		require.Equal(t, more.Messages, waiting.Messages, "what there is to answer")
	},
	"GET /chat/{id}/messages": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s", Mode: eventlog.ModeWithConfirmation, Approved: true})
		require.NoError(t, err)
		all(t, c.Stream(ctx, "s", 0))
		got, err := c.Messages(ctx, "s", client.HistoryOptions{})
		require.NoError(t, err)
		require.Len(t, got.Messages, 2)
		require.Contains(t, string(slices.Concat(got.Messages[1].Parts...)), `"output-available"`)
		got, err = c.Messages(ctx, "s", client.HistoryOptions{Paging: client.Paging{Offset: 1, Limit: 1}, NoToolResults: true, NoReasoning: true})
		require.NoError(t, err)
		require.Len(t, got.Messages, 1)
		require.NotContains(t, string(slices.Concat(got.Messages[0].Parts...)), `"output-available"`)
		got, err = c.Messages(ctx, "s", client.HistoryOptions{Paging: client.Paging{Limit: 1}})
		require.NoError(t, err)
		require.True(t, got.HasMore)
	},
	"POST /chat": func(t *testing.T, _ context.Context, s *server, c *client.Client) {
		got := all(t, c.Chat(ctxOf(t), client.ChatRequest{
			ID: "chat", SessionID: "s", AgentType: "echo", Messages: []client.UIMessage{client.UserMessage("u1", "<hi>")},
			Metadata: json.RawMessage(`{"from":"me"}`),
		}))
		require.Equal(t, "hello, you there", said(t, got))
		state, err := c.State(ctxOf(t), "s")
		require.NoError(t, err)
		require.Equal(t, "<hi>", state.State.Messages[0].Content)
		require.JSONEq(t, `{"from":"me"}`, string(state.State.Messages[0].Metadata))
		require.NotZero(t, got[len(got)-1].Sequence)

		got = all(t, c.Chat(ctxOf(t), client.ChatRequest{
			ID: "s", Trigger: "regenerate-message", Messages: []client.UIMessage{client.UserMessage("u1", "<hi>")}, TextParts: true,
		}))
		require.Empty(t, said(t, got))
		require.True(t, slices.ContainsFunc(got, func(p client.Part) bool {
			return typeOf(t, p) == "text-delta" && bytes.Contains(p.Data, []byte(`"text":"`))
		}), "of document 003")
		for _, err := range c.Chat(ctxOf(t), client.ChatRequest{ID: "s"}) {
			refused(t, err, 400, "INVALID_REQUEST")
		}
	},
	"GET /chat/{id}/stream": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		require.Empty(t, all(t, c.ChatStream(ctx, "nobody", client.ChatPosition{})), "nothing is under way")
		_, err := c.Start(ctx, client.StartRequest{SessionID: "s", AgentType: "gated", Messages: client.Text("hi")})
		require.NoError(t, err)
		var at uint64
		for p, err := range c.ChatStream(ctx, "s", client.ChatPosition{MessageID: "mine"}) {
			require.NoError(t, err)
			if p.Sequence > 0 {
				at = p.Sequence
			}
			if typeOf(t, p) == "start" {
				require.Contains(t, string(p.Data), `"mine"`)
			}
			if typeOf(t, p) == "text-delta" {
				break
			}
		}
		close(s.open)
		all(t, c.Stream(ctx, "s", 0))
		rest := all(t, c.ChatStream(ctx, "s", client.ChatPosition{From: at}))
		require.Equal(t, ", second", said(t, rest), "what has come since")
		resumed := all(t, c.ChatStream(ctx, "s", client.ChatPosition{From: at, Resync: true}))
		require.Equal(t, "data-stream-resync", typeOf(t, resumed[0]))
		for _, err := range c.ChatStream(ctx, "s", client.ChatPosition{From: 1 << 40}) {
			refused(t, err, 416, "CURSOR_AHEAD")
		}
	},
	"POST /chat/{id}/submit-tool-result": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s/1", "asker")
		at, err := c.Status(ctx, "s/1")
		require.NoError(t, err)
		done, err := c.ChatSubmitToolResult(ctx, client.Submission{
			SessionID: "s/1", ToolCallID: "rm", Kind: eventlog.SubmitApproval, Approved: true,
		})
		require.NoError(t, err)
		require.Equal(t, "accepted", done.Status)
		texts, _ := s.stream(c, "s/1", at.LatestSequence)
		require.Equal(t, []string{"removed"}, texts, "it has gone on by itself")
	},
	"POST /chat/{id}/interrupt": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		_, err := c.Start(ctx, client.StartRequest{SessionID: "s", AgentType: "gated", Messages: client.Text("hi")})
		require.NoError(t, err)
		require.NoError(t, c.ChatInterrupt(ctx, "s", "lunch"))
		status, err := c.Status(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "interrupted", status.Status)
	},
	"POST /chat/{id}/abort": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		require.NoError(t, c.ChatAbort(ctx, "s", ""))
		status, err := c.Status(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "failed", status.Status)
	},
	"GET /workspace": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		workspace, err := c.Workspace(ctx, "s")
		require.NoError(t, err)
		require.Nil(t, workspace)
		_, err = c.Workspace(ctx, "nobody")
		refused(t, err, 404, "NOT_FOUND")
	},
	"GET /sessions/{id}/stream": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		deltas := ""
		var others []client.StoreEvent
		approve := sync.OnceFunc(func() {
			_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s", Mode: eventlog.ModeWithConfirmation, Approved: true})
			require.NoError(t, err)
		})
		for e, err := range c.StoreStream(ctx, "s", 0) {
			require.NoError(t, err)
			approve() // attached to a stream that pauses
			if chunk, ok := e.(client.StoreChunk); !ok {
				others = append(others, e)
			} else if d, ok := chunk.Chunk.(*eventlog.TextDelta); ok {
				deltas += d.Delta
			}
		}
		require.Equal(t, "removed", deltas)
		require.Equal(t, []client.StoreEvent{
			client.StoreStatus{Status: eventlog.StreamActive}, client.StoreEnd{FinalOutput: json.RawMessage(`"removed"`)},
		}, others)
	},
	"GET /sessions/{id}/diff": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		now, err := c.State(ctx, "s")
		require.NoError(t, err)
		diff, err := c.Diff(ctx, "s", 0, nil)
		require.NoError(t, err)
		require.Equal(t, now.Sequence, diff.To)
		require.Len(t, diff.Messages, 2)
		require.NotEmpty(t, diff.Patch)
		diff, err = c.Diff(ctx, "s", now.Sequence, &now.Sequence)
		require.NoError(t, err)
		require.Empty(t, diff.Patch)
		diff, err = c.Diff(ctx, "s", now.Sequence, new(uint64(0)))
		require.NoError(t, err)
		require.Zero(t, diff.To)
		require.NotEmpty(t, diff.Patch)
	},
	"GET /sessions/{id}/usage": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		usage, err := c.Usage(ctx, "s", client.Paging{Limit: 1})
		require.NoError(t, err)
		require.Len(t, usage.Items, 1)
		require.Equal(t, 1, usage.Limit)
		require.Equal(t, "s", usage.Rollup.SessionID)
		require.NotEmpty(t, usage.Rollup.Runs)
	},
	"GET /sessions": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("a", 1)
		s.written("b", 1)
		s.started("c", "echo")
		page, err := c.Sessions(ctx, client.SessionFilter{}, client.Paging{Offset: 1, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []any{3, 1, 1, true}, []any{page.Total, page.Offset, page.Limit, page.HasMore})
		require.Equal(t, "b", page.Items[0].SessionID)
		page, err = c.Sessions(ctx, client.SessionFilter{AgentType: "echo", Status: projector.SessionCompleted}, client.Paging{})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)
		page, err = c.Sessions(ctx, client.SessionFilter{ParentSessionID: "c"}, client.Paging{})
		require.NoError(t, err)
		require.Zero(t, page.Total)
		for _, f := range []client.SessionFilter{{UserID: "u"}, {Tag: "t"}} {
			require.Empty(t, all(t, c.AllSessions(ctx, f)))
		}
	},
	"GET /sessions/{id}": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		summary, err := c.Session(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "echo", summary.AgentType)
		require.Equal(t, client.Counts{Messages: 2, Steps: 1, Runs: 1, Checkpoints: 1}, summary.Counts)
		require.NotZero(t, summary.HeadSequence)
	},
	"GET /sessions/{id}/records": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 5)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{})), 5)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{From: at.FirstSequence, To: at.LastSequence - 1})), 3)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{Limit: 2})), 2)
	},
	"GET /sessions/{id}/state": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 3)
		now, err := c.State(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, at.LastSequence, now.Sequence)
		require.Equal(t, "writer", now.State.AgentType)
		then, err := c.StateAt(ctx, "s", 0)
		require.NoError(t, err)
		require.Zero(t, then.State.Head, "before everything is not now")
		_, err = c.StateAt(ctx, "s", at.LastSequence+1)
		e := refused(t, err, 416, "CURSOR_AHEAD")
		head, _ := json.Marshal(map[string]uint64{"head": at.LastSequence})
		require.JSONEq(t, string(head), string(e.Detail))
	},
	"GET /sessions/{id}/checkpoints": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		page, err := c.Checkpoints(ctx, "s", client.Paging{})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.NotEmpty(t, page.Items[0].ID)
	},
	"GET /sessions/{id}/runs": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		started, _ := s.started("s", "echo")
		page, err := c.Runs(ctx, "s", client.Paging{})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.Equal(t, started.RunID, page.Items[0].RunID)
		page, err = c.Runs(ctx, "s", client.Paging{Offset: 1})
		require.NoError(t, err)
		require.Empty(t, page.Items)
	},
	"POST /sessions/{id}/rollback": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 5)
		done, err := c.Rollback(ctx, "s", client.Target{Sequence: at.FirstSequence})
		require.NoError(t, err)
		require.Equal(t, client.RolledBack{
			SessionID: "s", RolledBack: true, AfterSequence: at.FirstSequence, AtSequence: at.LastSequence,
		}, done)
		_, err = c.Rollback(ctx, "s", client.Target{CheckpointID: "none"})
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /sessions/{id}/fork": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		forked, err := c.Fork(ctx, "s", client.ForkRequest{})
		require.NoError(t, err)
		require.NotEmpty(t, forked.SessionID)
		first := 0
		forked, err = c.Fork(ctx, "s", client.ForkRequest{MessageIndex: &first, SessionID: "f/1"})
		require.NoError(t, err)
		require.Equal(t, "f/1", forked.SessionID)
		require.Equal(t, "s", forked.FromSessionID)
		fork, err := c.Session(ctx, "f/1")
		require.NoError(t, err)
		require.Equal(t, 1, fork.Counts.Messages)
	},
	"POST /sessions/{id}/chunks": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		done, err := c.AppendChunks(ctx, "s", texts("s", 3), client.AppendOptions{ExpectedSequence: new(uint64(0)), IdempotencyKey: "k"})
		require.NoError(t, err)
		require.Equal(t, 3, done.Count)
		again, err := c.AppendChunks(ctx, "s", texts("s", 3), client.AppendOptions{ExpectedSequence: new(uint64(0)), IdempotencyKey: "k"})
		require.NoError(t, err)
		require.Equal(t, done, again)
		_, err = c.AppendChunks(ctx, "s", texts("s", 2), client.AppendOptions{IdempotencyKey: "k"})
		refused(t, err, 409, "IDEMPOTENCY_MISMATCH")
		_, err = c.AppendChunks(ctx, "s", texts("s", 2), client.AppendOptions{ExpectedSequence: new(uint64(0))})
		refused(t, err, 409, "SEQUENCE_CONFLICT")
	},
	"POST /sessions/{id}/end": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 1)
		_, err := c.End(ctx, "s", json.RawMessage(`{"a":"<1>"}`), client.AppendOptions{ExpectedSequence: &at.LastSequence})
		require.NoError(t, err)
		_, last := s.stream(c, "s", 0)
		require.JSONEq(t, `{"a":"<1>"}`, string(last.(client.EndEvent).Output))
		s.written("s2", 1)
		_, err = c.End(ctx, "s2", nil, client.AppendOptions{})
		require.NoError(t, err)
	},
	"POST /sessions/{id}/fail": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		_, err := c.Fail(ctx, "s", "it broke", client.AppendOptions{IdempotencyKey: "k"})
		require.NoError(t, err)
		_, last := s.stream(c, "s", 0)
		require.Equal(t, client.ErrorEvent{Error: "it broke"}, last)
		_, err = c.Fail(ctx, "s", "again", client.AppendOptions{})
		refused(t, err, 409, "STREAM_ENDED")
	},
	"POST /sessions/{id}/import": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		records := exported(t, c, "s")
		_, err := c.Erase(ctx, "s")
		require.NoError(t, err)
		done, err := c.Import(ctx, "s", opens(records))
		require.NoError(t, err)
		require.Equal(t, bytes.Count(records, []byte("\n")), done.Records)
		require.NotEmpty(t, done.SHA256)
		require.NotEmpty(t, done.Durability)
		again, err := c.Session(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, 2, again.Counts.Messages)
		_, err = c.Import(ctx, "s2", opens([]byte("{}\n")))
		refused(t, err, 400, "INVALID_REQUEST")
	},
	"DELETE /sessions/{id}": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		done, err := c.Erase(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "s", done.SessionID)
		_, err = c.Session(ctx, "s")
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /retention": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		week := 7 * 24 * time.Hour
		done, err := c.Retain(ctx, client.Retention{PurgeOlderThan: new(time.Duration(0)), DropOlderThan: &week})
		require.NoError(t, err)
		require.Empty(t, done.Dropped)
		_, err = c.Retain(ctx, client.Retention{})
		refused(t, err, 400, "INVALID_REQUEST")
	},
	"GET /healthz": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		require.NoError(t, c.Health(ctx))
	},
	"GET /readyz": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		ready, err := c.Ready(ctx)
		require.NoError(t, err)
		require.True(t, ready.Ready)
		require.Equal(t, "v-test", ready.Version)
		require.Equal(t, []string{"asker", "echo", "gated"}, ready.Agents)
	},
}

// aliases are second names of routes, which the client has no use for.
var aliases = map[string]string{"GET /workspaces": "GET /workspace"}

func typeOf(t *testing.T, p client.Part) string {
	t.Helper()
	var part struct{ Type string }
	require.NoError(t, json.Unmarshal(p.Data, &part))
	return part.Type
}

// said returns the text of parts.
func said(t *testing.T, parts []client.Part) (text string) {
	t.Helper()
	for _, p := range parts {
		var part struct{ Delta string }
		require.NoError(t, json.Unmarshal(p.Data, &part))
		text += part.Delta
	}
	return text
}

// Every route has a method that reaches it.
func TestRoutes(t *testing.T) {
	known := map[string]bool{}
	for _, rt := range httpapi.Routes() {
		name := rt.Method + " " + rt.Pattern
		known[name] = true
		if aliases[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			use := uses[name]
			require.NotNil(t, use, "the client has no method for it that is used here")
			s := newServer(t)
			use(t, ctxOf(t), s, s.client())
			s.mu.Lock()
			defer s.mu.Unlock()
			require.True(t, slices.ContainsFunc(s.hits, func(h hit) bool { return h.method+" "+h.pattern == name }))
			require.False(t, slices.ContainsFunc(s.hits, func(h hit) bool { return h.pattern == "" }), "no request went astray")
		})
	}
	for name := range uses {
		require.True(t, known[name], "%s is no route", name)
	}
}
