package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector/readmodel"
)

var (
	ofAda  = eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}
	tea    = readmodel.Memory{ID: "m", Scope: ofAda, Content: "They like tea.", EmbeddingStatus: readmodel.EmbeddingPending}
	ofTeas = api.FoundMemories{
		Listing: api.Listing[api.FoundMemory]{
			Page: api.Page[api.FoundMemory]{Items: []api.FoundMemory{{Memory: tea, Score: 0.5}}, Total: 1, Limit: 3}, Fresh: behind,
		},
		WordsOnly: true,
	}
)

// usesMemories are those about what agents remember.
var usesMemories = map[string]use{
	"GET /memories": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		_, err := c.Memories(ctx, ofAda, client.Paging{})
		refused(t, err, 501, "NOT_IMPLEMENTED")
		s.answering(ofTeas, "scope=user&id=ada&offset=1&limit=3")
		got, err := c.Memories(ctx, ofAda, client.Paging{Offset: 1, Limit: 3})
		require.NoError(t, err)
		require.Equal(t, []api.FoundMemory{{Memory: tea, Score: 0.5}}, got.Items)
		require.True(t, got.WordsOnly)
		require.Equal(t, behind, got.Fresh)
		s.answering(ofTeas, "scope=user&id=ada&q=green+tea&limit=3")
		got, err = c.SearchMemories(ctx, ofAda, "green tea", 3)
		require.NoError(t, err)
		require.Len(t, got.Items, 1)
	},
	"POST /memories": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		draft := client.MemoryDraft{Scope: ofAda, Content: "They like tea.", Tags: []string{"t"}, Metadata: json.RawMessage(`{"a":1}`), IdempotencyKey: "k"}
		_, err := c.SaveMemory(ctx, draft)
		refused(t, err, 501, "NOT_IMPLEMENTED")
		s.answering(tea, "")
		got, err := c.SaveMemory(ctx, draft)
		require.NoError(t, err)
		require.Equal(t, tea, got)
	},
	"DELETE /memories/{memoryId}": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		refused(t, c.ForgetMemory(ctx, ofAda, "a/../m"), 501, "NOT_IMPLEMENTED")
		s.answering(api.ForgottenMemory{MemoryID: "m"}, "scope=user&id=ada")
		require.NoError(t, c.ForgetMemory(ctx, ofAda, "m"))
	},
	"DELETE /memories": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		_, err := c.EraseMemories(ctx, ofAda)
		refused(t, err, 501, "NOT_IMPLEMENTED")
		s.answering(api.ErasedMemories{Scope: ofAda, Pending: true}, "scope=user&id=ada")
		got, err := c.EraseMemories(ctx, ofAda)
		require.NoError(t, err)
		require.Equal(t, api.ErasedMemories{Scope: ofAda, Pending: true}, got)
	},
	"POST /memories/process": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		_, err := c.ProcessMemories(ctx)
		refused(t, err, 501, "NOT_IMPLEMENTED")
		s.answering(api.ProcessedMemories{Found: 3, Embedded: 2, Failed: 1}, "")
		got, err := c.ProcessMemories(ctx)
		require.NoError(t, err)
		require.Equal(t, api.ProcessedMemories{Found: 3, Embedded: 2, Failed: 1}, got)
	},
}
