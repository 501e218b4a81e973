package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// TestStateAt compares the state at every sequence with the fold.
func TestStateAt(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	a.append("other", created("other"))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"echo","message":"x"}`).status)
	a.stream("/sse?sessionId=s").rest()
	a.append("other", text("other", "a gap"))
	a.append("s", factOf("s", &fact.UserMessage{Content: "after the gap", Base: factBase("s")}))
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	tree := new(projector.Tree)
	at := func(query string, n uint64) {
		t.Helper()
		want, err := json.Marshal(api.StateAt{Sequence: n, State: tree})
		require.NoError(t, err)
		got := a.get("/sessions/s/state" + query)
		require.Equal(t, 200, got.status, got.body)
		require.JSONEq(t, string(want), got.body)
	}
	at("?at=0", 0)
	n := uint64(1)
	for r, err := range a.log.Read(a.ctx(), "s", 0, 0) {
		require.NoError(t, err)
		for ; n < r.Sequence; n++ {
			at(fmt.Sprint("?at=", n), n)
		}
		projector.Apply(tree, r)
	}
	at(fmt.Sprint("?at=", head), head)
	at("", head)
	body := a.get(fmt.Sprint("/sessions/s/state?at=", head+1)).failed(t, 416, api.CodeCursorAhead)
	require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	a.get("/sessions/s/state?at=x").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions/nobody/state").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/nobody/state?at=0").failed(t, 404, api.CodeNotFound)
}

// TestSnapshot compares snapshots with the fold at their sequence, idle
// and under way, and follows on from them.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"gated","message":"x"}`).status)
	s := a.stream("/sse?sessionId=s")
	for text := ""; text != "waiting"; {
		_, text = s.chunk()
	}
	type snap struct {
		State          json.RawMessage
		Messages       json.RawMessage
		StreamSequence uint64
		Status         string
	}
	take := func(query string) snap {
		t.Helper()
		var got snap
		a.get("/chat/s/snapshot"+query).decode(t, &got)
		tree := new(projector.Tree)
		for r, err := range a.log.Read(a.ctx(), "s", 0, got.StreamSequence) {
			require.NoError(t, err)
			projector.Apply(tree, r)
		}
		want, err := json.Marshal(uimessage.Render(tree, nil))
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got.Messages))
		require.JSONEq(t, tree.CustomState.String(), string(got.State))
		return got
	}
	whole, partial := take(""), take("?includePartialContent=true")
	require.Equal(t, "active", whole.Status)
	require.NotContains(t, string(whole.Messages), "waiting")
	require.Contains(t, string(partial.Messages), "waiting")
	require.Less(t, whole.StreamSequence, partial.StreamSequence)
	follow := a.stream(fmt.Sprint("/sse?sessionId=s&fromSequence=", whole.StreamSequence))
	rest := a.stream(fmt.Sprint("/sse?sessionId=s&fromSequence=", partial.StreamSequence))
	close(g.open)
	_, texts, _ := follow.rest()
	require.Contains(t, texts, "waiting")
	require.Contains(t, texts, " done")
	_, texts, _ = rest.rest()
	require.NotContains(t, texts, "waiting")
	require.Contains(t, texts, " done")
	require.Equal(t, "ended", take("").Status)

	a.get("/chat/s/snapshot?includePartialContent=maybe").failed(t, 400, api.CodeInvalidRequest)
	a.get("/chat/nobody/snapshot").failed(t, 404, api.CodeNotFound)
}

func TestHealth(t *testing.T) {
	a := newAPIOn(t, memory.New(), agents(gatedModel{}))
	require.Equal(t, `{"ok":true}`, a.get("/healthz").body)
	got := a.get("/readyz")
	require.Equal(t, 200, got.status)
	require.Equal(t, `{"ready":true,"durability":"memory","guarantee":"acknowledged appends are lost when the server ends","backend":"memory","partitions":1,"agents":["broken","echo","gated"],"version":"v-test"}`, got.body)
}
