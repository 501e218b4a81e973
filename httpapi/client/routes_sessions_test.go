package client_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/timeline"
)

// usesSessions are those of sessions and their pasts.
var usesSessions = map[string]use{
	"GET /sessions/{id}/stream": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "asker")
		deltas := ""
		var others []client.StoreEvent
		approve := sync.OnceFunc(func() {
			_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "s", Mode: fact.ModeWithConfirmation, Approved: true})
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
	"GET /sessions/{id}/replay": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		want := all(t, c.Stream(ctx, "s", 0))
		require.Equal(t, want, all(t, c.Replay(ctx, "s", client.Replay{MaxPause: -1})))
		from := want[1].(client.ChunkEvent).Sequence
		require.Equal(t, want[2:], all(t, c.Replay(ctx, "s", client.Replay{From: from, Speed: 1000, MaxPause: time.Millisecond})))
		require.Equal(t, []client.Event{want[0], want[1], client.EndEvent{Status: "active"}}, all(t, c.Replay(ctx, "s", client.Replay{To: from, Speed: 0.5, MaxPause: -1})))
		for _, err := range c.Replay(ctx, "s", client.Replay{Speed: -1}) {
			refused(t, err, 400, "INVALID_REQUEST")
		}
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
		require.Equal(t, []string{"scripted"}, diff.Unpriced)
		spent, err := c.Spent(ctx, "s", 0, &now.Sequence)
		require.NoError(t, err)
		require.Equal(t, diff.DiffSpent, spent)
		s.started("asks", "asker")
		asks, err := c.Diff(ctx, "asks", 0, nil)
		require.NoError(t, err)
		require.Equal(t, []api.CallChange{{SessionID: "asks", ToolCallID: "rm", ToolName: "remove", After: "waiting"}}, asks.ToolCalls)
		diff, err = c.Diff(ctx, "s", now.Sequence, &now.Sequence)
		require.NoError(t, err)
		require.Empty(t, diff.Patch)
		diff, err = c.Diff(ctx, "s", now.Sequence, new(uint64(0)))
		require.NoError(t, err)
		require.Zero(t, diff.To)
		require.NotEmpty(t, diff.Patch)
	},
	"GET /sessions/{id}/timeline": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		all, err := c.Timeline(ctx, "s", 0)
		require.NoError(t, err)
		require.Equal(t, []timeline.Lane{{SessionID: "s", AgentType: "echo"}}, all.Lanes)
		require.Equal(t, timeline.KindUser, all.Spans[0].Kind)
		news, err := c.Timeline(ctx, "s", all.Head)
		require.NoError(t, err)
		require.Empty(t, news.Spans)
	},
	"GET /compare": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		s.started("asks/1", "asker")
		both, err := c.Compare(ctx, client.Moment{SessionID: "s"}, client.Moment{SessionID: "asks/1"})
		require.NoError(t, err)
		require.Equal(t, []any{"s", "asks/1"}, []any{both.A.SessionID, both.B.SessionID})
		require.Len(t, both.A.Messages, 2)
		require.Len(t, both.A.Steps, 1)
		require.Equal(t, api.CallStatus("waiting"), both.B.ToolCalls[0].Status)
		require.NotEmpty(t, both.Patch)
		then, err := c.Compare(ctx, client.Moment{SessionID: "s", At: new(uint64(0))}, client.Moment{SessionID: "s", At: &both.A.Sequence})
		require.NoError(t, err)
		require.Equal(t, []uint64{0, both.A.Sequence}, []uint64{then.A.Sequence, then.B.Sequence})
		_, err = c.Compare(ctx, client.Moment{SessionID: "s"}, client.Moment{SessionID: "nobody"})
		refused(t, err, 404, "NOT_FOUND")
		_, err = c.Compare(ctx, client.Moment{SessionID: "s"}, client.Moment{})
		require.Error(t, err)
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
		for _, f := range []client.SessionFilter{{UserID: "u"}, {Tag: "t"}, {Metadata: map[string]string{"k": "v=w"}}, {To: time.UnixMilli(1)}} {
			require.Empty(t, all(t, c.AllSessions(ctx, f)))
		}
	},
	"GET /sessions/{id}": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.started("s", "echo")
		summary, err := c.Session(ctx, "s")
		require.NoError(t, err)
		require.Equal(t, "echo", summary.AgentType)
		require.Equal(t, api.Counts{Messages: 2, Steps: 1, Runs: 1, Checkpoints: 1}, summary.Counts)
		require.NotZero(t, summary.HeadSequence)
	},
	"GET /sessions/{id}/records": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 5)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{})), 5)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{From: at.FirstSequence, To: at.LastSequence - 1})), 3)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{Limit: 2})), 2)
		require.Len(t, all(t, c.Records(ctx, "s", client.RecordRange{Kind: eventlog.KindChunk, Types: []string{"x", "text_delta"}, Agent: "s"})), 5)
		for _, none := range []client.RecordRange{
			{Kind: eventlog.KindFact}, {Types: []string{"x"}}, {Agent: "t"}, {Run: "r"}, {Call: "c"},
		} {
			require.Empty(t, all(t, c.Records(ctx, "s", none)))
		}
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
	"POST /sessions/{id}/subscriptions": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		none := api.SubscriptionURLs{NATS: []string{}, WebSocket: []string{}}
		for ttl, ends := range map[time.Duration]int64{0: 0, 90 * time.Second: 90} {
			got, err := c.Subscribe(ctx, "s", ttl)
			require.NoError(t, err)
			require.Equal(t, api.Subscription{Subject: "helix.live.s", URLs: none, ExpiresAt: time.Unix(ends, 0).UTC()}, got)
		}
		_, err := c.Subscribe(ctx, "nobody", 0)
		refused(t, err, 404, "NOT_FOUND")
	},
	"POST /sessions/{id}/tickets": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		got, err := c.StreamTicket(ctx, "s")
		require.NoError(t, err)
		require.NotEmpty(t, got.Ticket)
		require.False(t, got.ExpiresAt.IsZero())
		_, err = c.StreamTicket(ctx, "nobody")
		refused(t, err, 404, "NOT_FOUND")
	},
	"DELETE /sessions/{id}/subscriptions": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 1)
		require.NoError(t, c.Unsubscribe(ctx, "s"))
		refused(t, c.Unsubscribe(ctx, "nobody"), 404, "NOT_FOUND")
	},
	"POST /sessions/{id}/rollback": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		at := s.written("s", 5)
		done, err := c.Rollback(ctx, "s", client.Target{Sequence: at.FirstSequence})
		require.NoError(t, err)
		require.Equal(t, api.RolledBack{
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
		prompt := "Be brief."
		forked, err = c.Fork(ctx, "s", client.ForkRequest{SessionID: "f2", Run: true, Message: "Again.", Edit: &client.ForkEdit{
			Message: &client.MessageEdit{Content: "Hello?", Index: &first}, SystemPrompt: &prompt,
		}})
		require.NoError(t, err)
		require.NotEmpty(t, forked.RunID)
		require.True(t, forked.Edits.SystemPrompt)
		_, err = c.Fork(ctx, "s", client.ForkRequest{Edit: &client.ForkEdit{ToolResult: &client.ResultEdit{ToolCallID: "none", Error: "x"}}})
		refused(t, err, 400, "INVALID_REQUEST")
	},
}
