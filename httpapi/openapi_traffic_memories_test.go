package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	logmem "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// trafficMemories: what agents remember.
func trafficMemories(t *testing.T, c *apiChecker) {
	log := logmem.New()
	a := c.server(t, log, nil, withMemories)
	saved := a.request("POST", "/memories", `{"scope":"user","id":"ada","content":"They like tea.","tags":["drinks"],"metadata":{"by":"hand"}}`, "Idempotency-Key", "k").done(t)
	var m readmodel.Memory
	saved.decode(t, &m)
	a.request("POST", "/memories", `{"scope":"user","id":"ada","content":"They like coffee."}`, "Idempotency-Key", "k").failed(t, 409, api.CodeIdempotencyMismatch)
	const ada = "/memories?scope=user&id=ada"
	require.Contains(t, a.get(ada+"&offset=0&limit=10").done(t).body, `"memoryId":"`+m.ID+`"`)
	require.Contains(t, a.get(ada+"&q=tea&limit=10").done(t).body, `"score":`)
	a.request("HEAD", ada, "").done(t)
	a.post("/memories/process", `{}`).done(t)
	for _, bad := range []string{"/memories", "/memories?scope=user", "/memories?scope=team&id=x", ada + "&q=", ada + "&q=x&limit=51", ada + "&q=x&offset=1", ada + "&limit=0"} {
		a.get(bad).failed(t, 400, api.CodeInvalidRequest)
	}
	a.request("DELETE", "/memories/"+m.ID+"?scope=user&id=ada", "").done(t)
	a.request("DELETE", "/memories/"+m.ID+"?scope=user&id=ada", "").failed(t, 404, api.CodeNotFound)
	a.request("POST", "/memories", `{"scope":"user","id":"ada","content":"They like tea."}`, "Idempotency-Key", "k").failed(t, 404, api.CodeNotFound)
	a.request("DELETE", ada, "").done(t)
	a.request("DELETE", ada, "").failed(t, 404, api.CodeNotFound)
	a.post("/memories", `{"scope":"user","id":"ada","tenant":"red","content":"They like tea."}`).decode(t, &m)
	require.Contains(t, a.get(ada+"&tenant=red").done(t).body, `"tenant":"red"`)
	a.request("DELETE", "/memories/"+m.ID+"?scope=user&id=ada&tenant=red", "").done(t)
	a.request("DELETE", ada+"&tenant=red", "").done(t)

	// One that an agent has saved says where.
	d := memory.Draft{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfAgent, ID: "clerk"}, Content: "x", Source: &fact.MemorySource{
		SessionID: "s", AgentType: "clerk", RunID: "r", ToolCallID: "c",
	}}
	_, err := remembering(log).Save(t.Context(), d)
	require.NoError(t, err)
	require.Contains(t, a.get("/memories?scope=agent&id=clerk").done(t).body, `"toolCallId":"c"`)

	// An embedder that is out costs the meaning, and vectors come later.
	out := c.server(t, log, nil, func(o *httpapi.Options) {
		o.Memories = memory.New(memory.Options{Log: o.Log, Index: foldedMemories{o.Log}, Embedder: outEmbedder{}})
	})
	require.Contains(t, out.get("/memories?scope=agent&id=clerk&q=x").done(t).body, `"wordsOnly":true`)
	require.Contains(t, out.post("/memories", `{"scope":"agent","id":"clerk","content":"y"}`).done(t).body, `"embeddingStatus":"pending"`)
	out.post("/memories/process", `{}`).failed(t, 503, api.CodeUnavailable)
	broken := c.server(t, log, nil, func(o *httpapi.Options) {
		o.Memories = memory.New(memory.Options{Log: o.Log, Index: foldedMemories{o.Log}, Embedder: brokenEmbedder{}})
	})
	broken.post("/memories/process", `{}`).failed(t, 503, api.CodeUnavailable)

	none := c.server(t, log, nil)
	for method, target := range map[string]string{"GET": "/memories", "DELETE": "/memories", "POST": "/memories/process"} {
		none.request(method, target+"?scope=user&id=ada", "{}").failed(t, 501, api.CodeNotImplemented)
	}
	none.request("DELETE", "/memories/m?scope=user&id=ada", "").failed(t, 501, api.CodeNotImplemented)
	none.post("/memories", `{"scope":"user","id":"ada","content":"x"}`).failed(t, 501, api.CodeNotImplemented)

	// An erasure that is not done yet.
	slow := c.server(t, pendingLog{log}, nil, withMemories)
	require.Equal(t, http.StatusAccepted, slow.request("DELETE", "/memories?scope=agent&id=clerk", "").status)
	c.server(t, fencedLog{log}, nil, withMemories).post("/memories", `{"scope":"agent","id":"clerk","content":"z"}`).failed(t, 409, api.CodeErasurePending)
	require.Equal(t, 413, a.post("/memories", `{"content":"`+strings.Repeat("x", api.MaxBody)+`"}`).status)
}

// fencedLog is a log all of which is being erased.
type fencedLog struct{ eventlog.Log }

func (fencedLog) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	return 0, eventlog.ErrErasing
}

// outEmbedder is one that does not answer.
type outEmbedder struct{}

func (outEmbedder) Model() string { return "out" }

func (outEmbedder) Embed(context.Context, []string) ([][]float32, error) {
	return nil, &model.Error{Code: model.CodeUnavailable, Message: "connection refused"}
}

// brokenEmbedder is one of the embedding program's, with its own errors.
type brokenEmbedder struct{}

func (brokenEmbedder) Model() string { return "broken" }

func (brokenEmbedder) Embed(context.Context, []string) ([][]float32, error) { return nil, nil }

func withMemories(o *httpapi.Options) { o.Memories = remembering(o.Log) }
