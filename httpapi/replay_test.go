package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// TestReplayIsTheStream: without pauses a replay is byte for byte what /sse
// sends, whatever became of the session, from wherever it begins.
func TestReplayIsTheStream(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	lively := livelySession(t, "s")
	lively.append("s", ended("s", `"one"`))
	endings := newAPIOn(t, memory.New(), append(waitingAgents(), agents(gatedModel{})...))
	endings.begin("waits", "asker")
	endings.begin("failed", "broken")
	endings.append("paused", created("paused"), requested("paused", "r"), text("paused", "a"), factOf("paused", &fact.StreamPaused{Base: factBase("paused")}))
	endings.begin("back", "asker")
	require.Equal(t, 200, endings.post("/resume", `{"sessionId":"back","mode":"with_confirmation","approved":true}`).status)
	endings.wait("back")
	require.Equal(t, 200, endings.post("/sessions/back/rollback", fmt.Sprintf(`{"sequence":%d}`, endings.tree("back").Messages[1].Sequence)).status)
	for session, a := range map[string]*testAPI{"s": lively, "waits": endings, "failed": endings, "paused": endings, "back": endings} {
		t.Run(session, func(t *testing.T) {
			head := a.head(session)
			for from := uint64(0); from <= head; from += 1 + head/15 {
				stream := a.get(fmt.Sprintf("/sse?sessionId=%s&fromSequence=%d", session, from))
				require.Equal(t, 200, stream.status)
				for _, again := range []answer{
					a.get(fmt.Sprintf("/sessions/%s/replay?speed=0&from=%d", session, from)),
					a.get(fmt.Sprintf("/sessions/%s/replay?speed=1000&maxPause=0&from=%d&to=%d", session, from, head)),
					a.get(fmt.Sprintf("/sessions/%s/replay?speed=0.0", session), "Last-Event-ID", fmt.Sprint(from)),
				} {
					require.Equal(t, stream.body, again.body, "from %d", from)
					require.Equal(t, "text/event-stream", again.header.Get("Content-Type"))
				}
			}
			require.Empty(t, a.request("HEAD", "/sessions/"+session+"/replay", "").body)
		})
	}
}

// TestReplayUpTo: up to each sequence it is what was true there.
func TestReplayUpTo(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := livelySession(t, "s")
	head := a.head("s")
	states := snapshot.New(a.log, nil)
	for to := range head + 1 {
		var want []uint64
		if to > 0 {
			for r, err := range eventlog.Effective(a.ctx(), a.log, "s", 0, to) {
				require.NoError(t, err)
				if r.Kind == eventlog.KindChunk && json.Valid(r.Payload) {
					want = append(want, r.Sequence)
				}
			}
		}
		got, _, end := a.stream(fmt.Sprintf("/sessions/s/replay?speed=0&to=%d", to)).rest()
		require.Equal(t, want, got, "to %d", to)
		then, err := states.At(a.ctx(), "s", to)
		require.NoError(t, err)
		switch {
		case then.StreamStatus == eventlog.StreamCompleted:
			require.Contains(t, end.data, `"output":`)
		case then.Status == projector.SessionInterrupted:
			require.Contains(t, end.data, `"status":"interrupted"`)
		case to < head:
			require.JSONEq(t, `{"type":"end","status":"active"}`, end.data, "to %d", to)
		}
	}
	// What comes while it is replayed belongs to another replay.
	s := a.stream("/sessions/s/replay?speed=0")
	a.append("s", text("s", "later"))
	_, texts, _ := s.rest()
	require.NotContains(t, texts, "later")
}

func TestReplayRefusals(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	head := a.append("s", created("s"), text("s", "a"))[1]
	for _, q := range []string{
		"speed=", "speed=x", "speed=-1", "speed=-0", "speed=0.001", "speed=1001", "speed=1e2", "speed=Inf", "speed=NaN", "speed=0x1", "speed=+1",
		"speed=.", "speed=1&speed=2", "maxPause=", "maxPause=-1", "maxPause=0.5", "maxPause=600001", "from=x", "from=-1", "to=x", "from=2&to=1",
	} {
		a.get("/sessions/s/replay?"+q).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get("/sessions/s/replay", "Last-Event-ID", "x").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions/s/replay?to=1", "Last-Event-ID", "2").failed(t, 400, api.CodeInvalidRequest)
	for _, q := range []string{"from=3", "to=3", "from=3&to=9"} {
		body := a.get("/sessions/s/replay?"+q).failed(t, 416, api.CodeCursorAhead)
		require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	}
	a.get("/sessions/nobody/replay").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/nobody/replay?to=0").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/%00/replay").failed(t, 400, api.CodeInvalidRequest)
	require.Equal(t, "GET, HEAD", a.post("/sessions/s/replay", "{}").header.Get("Allow"))
	a.srv.Close()
	a.get("/sessions/s/replay").failed(t, 503, api.CodeUnavailable)
}

func TestReplayStuck(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"))
	for range 16 {
		a.append("s", text("s", strings.Repeat("x", 1<<20)))
	}
	a.stuckOn("/sessions/s/replay?speed=0")()
	require.NotContains(t, a.logs.String(), "level=ERROR")
}
