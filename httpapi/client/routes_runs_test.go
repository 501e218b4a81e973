package client_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
)

// usesRuns are those of runs.
var usesRuns = map[string]use{
	"POST /start": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		req := client.StartRequest{
			SessionID: "s", AgentType: "echo", State: json.RawMessage(`{"n":"<1>"}`), Metadata: map[string]string{"k": "v"},
			UserID: "u", Tags: []string{"a", "b"},
			Messages: []client.Message{{Content: "look", Metadata: json.RawMessage(`{"from":"me"}`), Files: []fact.MessageFile{
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
		require.Equal(t, req.UserID, state.State.UserID)
		require.Equal(t, req.Tags, state.State.Tags)
		require.JSONEq(t, string(req.State), state.State.CustomState.String())
		require.Equal(t, req.Messages[0].Content, state.State.Messages[0].Content)
		require.Equal(t, req.Messages[0].Files, state.State.Messages[0].Files)
		require.Equal(t, string(req.Messages[0].Metadata), string(state.State.Messages[0].Metadata))
		_, err = c.Start(ctx, req)
		refused(t, err, 409, "ALREADY_COMPLETED")
		_, err = c.Start(ctx, client.StartRequest{SessionID: "s2", AgentType: "nobody", Messages: client.Text("hi")})
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /sessions/{id}/messages": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		started, _ := s.started("s", "echo")
		status, err := c.Status(ctx, "s")
		require.NoError(t, err)
		next := client.MessageRequest{SessionID: "s", Messages: client.Text("more"), IdempotencyKey: "k"}
		second, err := c.SendMessage(ctx, next)
		require.NoError(t, err)
		require.NotEqual(t, started, second)
		s.stream(c, "s", status.LatestSequence)
		again, err := c.SendMessage(ctx, next)
		require.NoError(t, err)
		require.Equal(t, second, again)
		state, err := c.State(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, 2, state.State.TurnCount)
		_, err = c.SendMessage(ctx, client.MessageRequest{SessionID: "nobody", Messages: client.Text("more"), UserID: "u"})
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /resume": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		goOn := func(r client.ResumeRequest) (api.Started, []string) {
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
		_, texts = goOn(client.ResumeRequest{Mode: fact.ModeWithConfirmation, Approved: true})
		require.Equal(t, []string{"removed"}, texts)

		s.started("s3", "asker")
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s3", Mode: fact.ModeWithConfirmation}) // denied
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

		goOn(client.ResumeRequest{Mode: fact.ModeRetry, Turn: 1})
		page, err := c.Checkpoints(ctx, "s4", client.Paging{})
		require.NoError(t, err)
		require.NotEmpty(t, page.Items)
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Mode: fact.ModeFromCheckpoint, CheckpointID: page.Items[0].ID})
		require.NoError(t, err)
		all(t, c.Stream(ctx, "s4", 0))
		_, err = c.Resume(ctx, client.ResumeRequest{SessionID: "s4", Mode: fact.ModeContinue, CheckpointID: "x"})
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
			SessionID: "s", ToolCallID: waits.ToolCallID, Kind: fact.SubmitApproval, ApprovalID: waits.ApprovalID,
			Approved: true, Reason: "fine",
		}
		_, err = c.SubmitToolResult(ctx, client.Submission{
			SessionID: "s", ToolCallID: waits.ToolCallID, Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
		})
		refused(t, err, 400, "INVALID_REQUEST")
		done, err := c.SubmitToolResult(ctx, answer)
		require.NoError(t, err)
		require.Equal(t, api.Submitted{Status: "accepted", SessionID: "s", ToolCallID: waits.ToolCallID, PendingToolCallIDs: []string{}}, done)
		done, err = c.SubmitToolResult(ctx, answer)
		require.NoError(t, err)
		require.Equal(t, "already_completed", done.Status)

		s.started("s2", "asker")
		done, err = c.SubmitToolResult(ctx, client.Submission{
			SessionID: "s2", ToolCallID: "rm", Kind: fact.SubmitClientResult, Error: "no",
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
		require.Equal(t, api.Status{
			SessionID: "s", RunID: started.RunID, Status: "completed", StepCount: 1, StreamID: started.StreamID,
			Output: json.RawMessage(`"hello, you there"`), State: json.RawMessage(`{"n":0}`),
		}, status)
	},
	"GET /workspace": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		workspace, err := c.Workspace(ctx, "s")
		require.NoError(t, err)
		require.Nil(t, workspace)
		s.started("files", "coder")
		workspace, err = c.Workspace(ctx, "files")
		require.NoError(t, err)
		require.NotEmpty(t, workspace.Ref)
		require.NotZero(t, workspace.OpenedAt)
		workspace.Ref, workspace.OpenedAt, workspace.LastUsedAt = nil, 0, 0
		require.Equal(t, &api.Workspace{
			Name: "files", ProviderID: "memory", Status: "open", Capabilities: []fact.WorkspaceCapability{fact.WorkspaceFS},
		}, workspace)
		_, err = c.Workspace(ctx, "nobody")
		refused(t, err, 404, "NOT_FOUND")
	},
	"GET /sessions/{id}/files": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("files", "coder")
		page, err := c.Files(ctx, "files", "", client.Paging{Limit: 1})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.Equal(t, "a", page.Items[0].Path)
		require.EqualValues(t, 1, page.Items[0].Size)
		require.False(t, page.HasMore)
		_, err = c.Files(ctx, "files", "src", client.Paging{})
		refused(t, err, 404, "NOT_FOUND")
	},
}
