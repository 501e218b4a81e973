package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

func ofScope(s eventlog.MemoryScope) url.Values {
	q := url.Values{"scope": {string(s.Kind)}, "id": {s.ID}}
	if s.Tenant != "" {
		q.Set("tenant", s.Tenant)
	}
	return q
}

// Memories returns a page of a scope's memories, newest first. The server needs
// read models for memories.
func (c *Client) Memories(ctx context.Context, scope eventlog.MemoryScope, p Paging) (api.FoundMemories, error) {
	return fetch(ctx, c, get("memories", p.to(ofScope(scope))), areMemories)
}

// SearchMemories returns the memories of a scope that fit a text best, at most
// limit, up to 50; 0: 10.
func (c *Client) SearchMemories(ctx context.Context, scope eventlog.MemoryScope, text string, limit int) (api.FoundMemories, error) {
	q := ofScope(scope)
	q.Set("q", text)
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return fetch(ctx, c, get("memories", q), areMemories)
}

func areMemories(f *api.FoundMemories) bool { return f.Items != nil }

// MemoryDraft is a memory to be saved.
type MemoryDraft struct {
	Scope    eventlog.MemoryScope
	Content  string          // at most fact.MaxMemory bytes
	Tags     []string        // at most fact.MaxMemoryTags
	Metadata json.RawMessage // an object of at most fact.MaxMemoryMetadata bytes, or nil
	// IdempotencyKey names the memory within its scope: it is saved once, and
	// the call may be repeated, which is NOT_FOUND when it was forgotten. Empty:
	// it is a new one.
	IdempotencyKey string
}

// SaveMemory saves a memory: when it returns, that is as durable as the log.
func (c *Client) SaveMemory(ctx context.Context, d MemoryDraft) (readmodel.Memory, error) {
	body := map[string]any{"scope": d.Scope.Kind, "id": d.Scope.ID, "content": d.Content}
	if d.Scope.Tenant != "" {
		body["tenant"] = d.Scope.Tenant
	}
	if d.Tags != nil {
		body["tags"] = d.Tags
	}
	if d.Metadata != nil {
		body["metadata"] = d.Metadata
	}
	k := AppendOptions{IdempotencyKey: d.IdempotencyKey}.on(post("memories", false, body))
	return fetch(ctx, c, k, func(m *readmodel.Memory) bool { return m.ID != "" })
}

// ForgetMemory makes sure that a memory is never found again, nor saved again under its key.
// Its bytes stay until the scope is erased. It is repeated: if the answer to a first try was lost,
// there may be none any more, which is NOT_FOUND.
func (c *Client) ForgetMemory(ctx context.Context, scope eventlog.MemoryScope, id string) error {
	k := request{safe: true, Request: remotehttp.Request{Method: http.MethodDelete, Query: ofScope(scope)}}
	_, err := fetch(ctx, c, k.of("memories", id), func(f *struct{ MemoryID string }) bool { return f.MemoryID != "" })
	return err
}

// EraseMemories erases all memories of a scope for good. It is repeated, as
// Erase is.
func (c *Client) EraseMemories(ctx context.Context, scope eventlog.MemoryScope) (api.ErasedMemories, error) {
	k := request{safe: true, Request: remotehttp.Request{Method: http.MethodDelete, Route: "memories", Query: ofScope(scope)}}
	return fetch(ctx, c, k, func(e *api.ErasedMemories) bool { return e.Scope.Kind != "" })
}

// ProcessMemories has the server compute the vectors that are missing, as after
// an outage of its embedder. It is repeated; the answer is then of the last
// try. While the server works, it is waited for as long as ctx allows.
func (c *Client) ProcessMemories(ctx context.Context) (api.ProcessedMemories, error) {
	k := post("memories/process", true, map[string]string{})
	k.Idle = -1
	return fetch[api.ProcessedMemories](ctx, c, k, nil)
}
