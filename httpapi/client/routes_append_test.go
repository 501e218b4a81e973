package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/snapshot/backup"
)

// usesAppend are those of outside producers and of operators.
var usesAppend = map[string]use{
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
		_, err = c.Retain(ctx, client.Retention{MaxBytes: new(uint64(1 << 40))})
		require.NoError(t, err)
		_, err = c.Retain(ctx, client.Retention{})
		refused(t, err, 400, "INVALID_REQUEST")
	},
	"GET /backup": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		s.written("s", 3)
		var file bytes.Buffer
		require.NoError(t, c.Backup(ctx, &file, 1<<40))
		_, done, err := backup.Read(ctx, &file, backup.Visitor{})
		require.NoError(t, err)
		require.Equal(t, 1, done.Sessions)
		refused(t, c.Backup(ctx, &file, 1), 400, "INVALID_REQUEST")
	},
	"POST /sweep": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		done, err := c.Sweep(ctx, false)
		require.NoError(t, err)
		require.Equal(t, api.Swept{}, done)
	},
	"POST /admin/reload": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		done, err := c.Reload(ctx)
		require.NoError(t, err)
		require.Equal(t, api.Reloaded{Agents: []string{"echo"}, NeedsRestart: []string{"listen"}}, done)
	},
	"GET /healthz": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		require.NoError(t, c.Health(ctx))
	},
	"GET /metrics": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		text, err := c.Metrics(ctx)
		require.NoError(t, err)
		require.Equal(t, "# HELP things_total Things.\n# TYPE things_total counter\nthings_total 1\n", text)
	},
	"GET /readyz": func(t *testing.T, ctx context.Context, _ *server, c *client.Client) {
		ready, err := c.Ready(ctx)
		require.NoError(t, err)
		require.True(t, ready.Ready)
		require.Equal(t, "v-test", ready.Version)
		require.Equal(t, []string{"asker", "coder", "echo", "gated"}, ready.Agents)
	},
}
