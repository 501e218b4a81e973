package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

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

// usesChat are those of chat clients.
var usesChat = map[string]use{
	"POST /chat/{id}/tickets": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		got, err := c.ChatTicket(ctx, "s")
		require.NoError(t, err)
		require.NotEmpty(t, got.Ticket)
		require.False(t, got.ExpiresAt.IsZero())
		_, err = c.ChatTicket(ctx, "nobody")
		refused(t, err, 404, "NOT_FOUND")
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
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s", Mode: fact.ModeWithConfirmation, Approved: true})
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
			ID: "chat", SessionID: "s", AgentType: "echo", Messages: []api.UIMessage{client.UserMessage("u1", "<hi>")},
			Metadata: json.RawMessage(`{"from":"me"}`),
		}))
		require.Equal(t, "hello, you there", said(t, got))
		state, err := c.State(ctxOf(t), "s")
		require.NoError(t, err)
		require.Equal(t, "<hi>", state.State.Messages[0].Content)
		require.JSONEq(t, `{"from":"me"}`, string(state.State.Messages[0].Metadata))
		require.NotZero(t, got[len(got)-1].Sequence)

		got = all(t, c.Chat(ctxOf(t), client.ChatRequest{
			ID: "s", Trigger: "regenerate-message", Messages: []api.UIMessage{client.UserMessage("u1", "<hi>")}, TextParts: true,
		}))
		require.Empty(t, said(t, got))
		require.True(t, slices.ContainsFunc(got, func(p client.Part) bool {
			return typeOf(t, p) == "text-delta" && bytes.Contains(p.Data, []byte(`"text":"`))
		}), "TextStreamParts")
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
			SessionID: "s/1", ToolCallID: "rm", Kind: fact.SubmitApproval, Approved: true,
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
}
