package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// stateDiff is httpapi.StateDiff as a client reads it.
type stateDiff struct {
	From, To  uint64
	Patch     json.RawMessage
	Messages  []projector.Message
	ToolCalls []api.CallChange
	api.Spent
}

// stateAt returns the state as GET /state shows it.
func (a *testAPI) stateAt(session string, n uint64) json.RawMessage {
	a.t.Helper()
	var at struct{ State json.RawMessage }
	a.get(fmt.Sprintf("/sessions/%s/state?at=%d", session, n)).decode(a.t, &at)
	return at.State
}

// diffs checks the diff between two sequences by applying it.
func (a *testAPI) diffs(session string, from, to uint64) stateDiff {
	a.t.Helper()
	got := a.get(fmt.Sprintf("/sessions/%s/diff?from=%d&to=%d", session, from, to))
	require.Equal(a.t, 200, got.status, got.body)
	var d stateDiff
	got.decode(a.t, &d)
	require.Equal(a.t, []uint64{from, to}, []uint64{d.From, d.To})
	patch, err := jsonpatch.DecodePatch(d.Patch)
	require.NoError(a.t, err)
	next, err := patch.Apply(a.stateAt(session, from))
	require.NoError(a.t, err, string(d.Patch))
	require.Equal(a.t, exactly(a.t, a.stateAt(session, to)), exactly(a.t, next), "%d to %d: %s", from, to, d.Patch)
	return d
}

// exactly decodes JSON with its numbers as they are written.
func exactly(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// TestDiff patches the state of each sequence into that of each other one, of
// a tree with sub-agents, a rollback and odd custom states.
func TestDiff(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), waitingAgents())
	a.begin("p", "parent")
	asked := a.status("p").LatestSequence
	var child string
	for _, call := range a.pending("p") {
		child = call.ToolCallID
	}
	require.Equal(t, 200, a.post(submitTarget, `{"sessionId":"p","kind":"approval-response","toolCallId":"`+child+`","approved":true}`).status)
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"p"}`).status)
	a.wait("p")
	require.Equal(t, 200, a.post("/sessions/p/rollback", fmt.Sprintf(`{"sequence":%d}`, asked)).status)
	head := a.status("p").LatestSequence
	for from := uint64(0); from <= head; from += 3 {
		for to := uint64(0); to <= head; to += 4 {
			d := a.diffs("p", from, to)
			if from >= to {
				require.Equal(t, []projector.Message{}, d.Messages)
			}
			if from == to {
				require.JSONEq(t, `[]`, string(d.Patch))
			}
		}
	}
	whole := a.diffs("p", 0, asked)
	require.Len(t, whole.Messages, 2)
	require.Equal(t, "go", whole.Messages[0].Content)
	require.Len(t, a.diffs("p", whole.Messages[0].Sequence, asked).Messages, 1)
	require.Empty(t, a.diffs("p", asked, head).Messages, "they were taken back")

	var byDefault stateDiff
	a.get("/sessions/p/diff").decode(t, &byDefault)
	require.Equal(t, []uint64{0, head}, []uint64{byDefault.From, byDefault.To})
	require.JSONEq(t, string(a.diffs("p", 0, head).Patch), string(byDefault.Patch))
}

// TestDiffOfOddStates: numbers as they are written, names that a pointer
// escapes, and values that look like nothing.
func TestDiffOfOddStates(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	for i, state := range []string{
		`{"n":12345678901234567890,"x":1.0,"null":null,"":{"":1},"a/b":1,"m~n":[1,[2],{}],"list":[1,2,3,4]}`,
		`{"n":12345678901234567891,"x":1,"":{"":[]},"a/b":null,"m~n":[[2],{"<":"&>"},null,false,"",0],"list":[2,4]}`,
		`{"null":{},"":null,"~1":"\u2028","list":{"0":1},"-":[]}`,
		`{}`,
	} {
		entry := created("s")
		if i > 0 {
			entry = factOf("s", &fact.SessionCreated{AgentType: "writer", State: json.RawMessage(state), Base: factBase("s")})
		}
		a.append("s", entry)
	}
	for from := range uint64(5) {
		for to := range uint64(5) {
			a.diffs("s", from, to)
		}
	}
}

func TestDiffRefusals(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	head := a.append("s", created("s"), text("s", "a"))[1]
	for _, q := range []string{"from=3", "to=3", "from=3&to=1", "from=1&to=99"} {
		body := a.get("/sessions/s/diff?"+q).failed(t, 416, api.CodeCursorAhead)
		require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	}
	for _, q := range []string{"from=x", "to=x", "from=-1", "to=", "from=1&from=2", "only=", "only=patch", "only=spent&only=spent"} {
		a.get("/sessions/s/diff?"+q).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get("/sessions/%00/diff").failed(t, 400, api.CodeInvalidRequest)
	for _, q := range []string{"", "?from=0&to=0", "?from=1&to=2"} {
		a.get("/sessions/nobody/diff"+q).failed(t, 404, api.CodeNotFound)
	}
	require.Equal(t, "GET, HEAD", a.post("/sessions/s/diff", "{}").header.Get("Allow"))
}
