package httpapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// A memory is saved, listed, found, forgotten and erased; what is saved under a
// key is saved once.
func TestMemories(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withMemories)
	save := func(body string, header ...string) (m api.FoundMemory) {
		t.Helper()
		a.request("POST", "/memories", body, header...).done(t).decode(t, &m)
		return m
	}
	tea := save(`{"scope":"user","id":"ada","content":"Ada likes green tea."}`, "Idempotency-Key", "k")
	require.Equal(t, tea, save(`{"scope":"user","id":"ada","content":"Ada likes green tea."}`, "Idempotency-Key", "k"))
	cake := save(`{"scope":"user","id":"ada","content":"Ada likes cake.","metadata":{"a": 1}}`)
	bob := save(`{"scope":"user","id":"bob","content":"Bob likes tea, too."}`)
	require.NotEqual(t, bob.ID, tea.ID)

	ids := func(target string) (ids []string) {
		t.Helper()
		var found api.FoundMemories
		a.get(target).done(t).decode(t, &found)
		require.True(t, found.Current)
		for _, m := range found.Items {
			ids = append(ids, m.ID)
		}
		return ids
	}
	require.Equal(t, []string{cake.ID, tea.ID}, ids("/memories?scope=user&id=ada"))
	require.Equal(t, []string{tea.ID}, ids("/memories?scope=user&id=ada&offset=1&limit=1"))
	require.Equal(t, []string{tea.ID}, ids("/memories?scope=user&id=ada&q=tea"))
	require.Empty(t, ids("/memories?scope=user&id=nobody"))

	a.request("DELETE", "/memories/"+tea.ID+"?scope=user&id=bob", "").failed(t, 404, api.CodeNotFound)
	a.request("DELETE", "/memories/"+tea.ID+"?scope=user&id=ada", "").done(t)
	require.Equal(t, []string{cake.ID}, ids("/memories?scope=user&id=ada"))
	again := a.request("POST", "/memories", `{"scope":"user","id":"ada","content":"Ada likes green tea."}`, "Idempotency-Key", "k")
	again.failed(t, 404, api.CodeNotFound)
	require.Contains(t, again.body, "the memory was forgotten")
	require.Equal(t, []string{cake.ID}, ids("/memories?scope=user&id=ada"))
	a.request("DELETE", "/memories?scope=user&id=ada", "").done(t)
	require.Empty(t, ids("/memories?scope=user&id=ada"))
	require.Equal(t, []string{bob.ID}, ids("/memories?scope=user&id=bob"))
}

func TestBadMemories(t *testing.T) {
	log := memory.New()
	a := newAPIOn(t, log, nil, withMemories)
	metadata := func(bytes int) string {
		return `{"scope":"user","id":"ada","content":"x","metadata":{"k": "` + strings.Repeat("x", bytes-len(`{"k":""}`)) + `"}}`
	}
	tags := func(n, bytes int) string {
		all, err := json.Marshal(slices.Repeat([]string{strings.Repeat("x", bytes)}, n))
		require.NoError(t, err)
		return `{"scope":"user","id":"ada","content":"x","tags":` + string(all) + `}`
	}
	for _, c := range []struct{ body, field string }{
		{`{"id":"ada","content":"x"}`, "scope"},
		{`{"scope":"team","id":"ada","content":"x"}`, "scope"},
		{`{"scope":"user","content":"x"}`, "id"},
		{`{"scope":"user","id":"a\u0000","content":"x"}`, "id"},
		{`{"scope":"user","id":"ada"}`, "content"},
		{`{"scope":"user","id":"ada","content":" "}`, "content"},
		{`{"scope":"user","id":"ada","content":"x","tags":[""]}`, "tags[0]"},
		{`{"scope":"user","id":"ada","content":"x","metadata":[]}`, "metadata"},
		{metadata(fact.MaxMemoryMetadata + 1), "metadata"},
		{tags(fact.MaxMemoryTags+1, 1), "tags"},
		{tags(fact.MaxMemoryTags, eventlog.MaxID+1), "tags[0]"},
	} {
		got := a.post("/memories", c.body)
		got.failed(t, 400, api.CodeInvalidRequest)
		require.Contains(t, got.body, `"field":"`+c.field+`"`, c.body)
	}
	a.request("POST", "/memories", `{"scope":"user","id":"ada","content":"x"}`, "Helix-Expected-Sequence", "0").failed(t, 400, api.CodeInvalidRequest)
	_, err := log.Head(t.Context(), eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}.LogID())
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	a.post("/memories", metadata(fact.MaxMemoryMetadata)).done(t)
	a.post("/memories", tags(fact.MaxMemoryTags, eventlog.MaxID)).done(t)
}

// A caller that may use only some sessions reaches only their memories, and no user's or
// agent's memories, whatever these are called.
func TestMemoriesOfOthers(t *testing.T) {
	log := memory.New()
	a := newAPIOn(t, log, nil, withMemories, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "all", Operations: []string{"*"}, Sessions: []string{"*"}},
			{Token: "ann", Operations: []string{"memory"}, Sessions: []string{"ann-*", "ann", "~memory/*"}},
			{Token: "reader", Operations: []string{"records", "search"}, Sessions: []string{"*"}},
		})
	})
	for _, id := range []string{"ann-1", "bob-1"} {
		a.append(id, created(id))
	}
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for _, scope := range []string{`"session","id":"ann-1"`, `"session","id":"bob-1"`, `"user","id":"ann"`, `"agent","id":"ann"`} {
		a.request("POST", "/memories", `{"scope":`+scope+`,"content":"x"}`, as("all")...).done(t)
		a.request("POST", "/memories", `{"scope":`+scope+`,"content":"x"}`, as("reader")...).failed(t, 403, api.CodeUnauthorized)
	}
	a.request("GET", "/memories?scope=session&id=ann-1", "", as("ann")...).done(t)
	for _, other := range []string{"scope=session&id=bob-1", "scope=user&id=ann", "scope=agent&id=ann"} {
		a.request("GET", "/memories?"+other, "", as("ann")...).failed(t, 403, api.CodeUnauthorized)
		a.request("DELETE", "/memories/m?"+other, "", as("ann")...).failed(t, 403, api.CodeUnauthorized)
	}
	a.request("DELETE", "/memories?scope=session&id=ann-1", "", as("ann")...).failed(t, 403, api.CodeUnauthorized)
	a.request("POST", "/memories/process", "{}", as("ann")...).failed(t, 403, api.CodeUnauthorized)
	a.request("GET", "/memories?scope=session&id=ann-none", "", as("ann")...).failed(t, 404, api.CodeNotFound)

	a.request("DELETE", "/sessions/ann-1", "", as("all")...).done(t)
	_, err := log.Head(t.Context(), eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "ann-1"}.LogID())
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}
