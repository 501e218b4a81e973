package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	eventmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/memory"
)

func TestAnErasedSessionIsNotFoundAnywhere(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", chunk(&eventlog.TextDelta{Delta: "hi", Base: base("s")}))
	a.append("other", chunk(&eventlog.TextDelta{Delta: "hi", Base: base("other")}))
	resp, err := http.Get(a.http.URL + "/sse?sessionId=s")
	require.NoError(t, err)
	defer resp.Body.Close()
	attached := bufio.NewScanner(resp.Body)
	require.True(t, attached.Scan()) // the first chunk has come

	got := a.request("DELETE", "/sessions/s", "")
	require.Equal(t, 200, got.status)
	require.JSONEq(t, `{"sessionId":"s","pending":false,"forks":[]}`, got.body)

	for attached.Scan() { // attached clients are disconnected
		require.NotContains(t, attached.Text(), "event: end")
	}
	for _, path := range []string{
		"/sessions/s", "/sessions/s/records", "/sessions/s/state", "/status?sessionId=s", "/sse?sessionId=s", "/chat/s/snapshot",
	} {
		a.get(path).failed(t, 404, api.CodeNotFound)
	}
	a.request("DELETE", "/sessions/s", "").failed(t, 404, api.CodeNotFound)
	require.NotContains(t, a.get("/sessions").body, `"sessionId":"s"`)
	require.Equal(t, 200, a.get("/sessions/other/state").status)
}

// An erasure that was interrupted after its tombstone: writers get an error at once, and none
// waits until a deadline.
func TestASessionThatIsBeingErasedTakesNothing(t *testing.T) {
	t.Parallel()
	log, nc := newLogAndConn(t)
	a := newAPIOn(t, log, []agentloop.Agent{{Name: "a", Model: scripted.New([]scripted.Turn{{Text: "hi"}}, nil)}})
	a.append("s", chunk(&eventlog.TextDelta{Delta: "hi", Base: base("s")}))
	tombstone := nats.NewMsg("helix.log.0.s")
	tombstone.Header["Helix-Kind"], tombstone.Header["Helix-Type"] = []string{"fact"}, []string{"erased"}
	_, err := nc.RequestMsg(tombstone, within)
	require.NoError(t, err)
	start := time.Now()
	a.post(chunksOf("s"), line("s", "x")).failed(t, 409, api.CodeErasurePending)
	a.post(chunksOf("s"), line("s", "x"), idemKey, "k", expected, "0").failed(t, 409, api.CodeErasurePending)
	a.post("/start", `{"agentType":"a","sessionId":"s","message":"hi"}`).failed(t, 409, api.CodeErasurePending)
	record, err := eventlog.Record{Sequence: 1, Time: time.Unix(1, 0), Entry: created("s")}.MarshalJSON()
	require.NoError(t, err)
	a.post(importOf("s"), string(record)).failed(t, 409, api.CodeErasurePending)
	require.Less(t, time.Since(start), within/2)
	require.Equal(t, 200, a.request("DELETE", "/sessions/s", "").status, "it is finished")
	require.EqualValues(t, 1, a.post(chunksOf("s"), line("s", "x")).appended(t).Count)
}

// TestAnErasureThatCouldNotBegin is not pending, whether the session is there
// or not: the log is out of reach.
func TestAnErasureThatCouldNotBegin(t *testing.T) {
	t.Parallel()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	defer log.Close()
	a := newAPIOn(t, log, nil)
	a.append("s", created("s"))
	httpapi.SetEraseTimeout(a.srv, 50*time.Millisecond)
	srv.Stop()
	for _, target := range []string{"/sessions/s", "/sessions/unknown"} {
		a.request("DELETE", target, "").failed(t, 503, api.CodeUnavailable)
	}
}

// Files are removed first: where that takes longer than an answer may, the session
// is still there, and the answer says what to do.
func TestAnErasureOfManyFiles(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("large", created("large"))
	httpapi.SetEraseTimeout(a.srv, time.Millisecond)
	got := a.request("DELETE", "/sessions/large", "")
	got.failed(t, 503, api.CodeUnavailable)
	require.Contains(t, got.body, "delete it again")
	require.Equal(t, 200, a.get("/sessions/large/state").status)
}

// slowLog is a log whose erasures begin, and are not done in time.
type slowLog struct{ eventlog.Log }

func (slowLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if eventlog.IsMemoryLog(session) {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	<-ctx.Done()
	return eventlog.Erasure{Pending: true}, ctx.Err()
}

func TestAnErasureThatHasBegunIsPending(t *testing.T) {
	a := newAPIOn(t, slowLog{eventmemory.New()}, nil)
	httpapi.SetEraseTimeout(a.srv, time.Millisecond)
	got := a.request("DELETE", "/sessions/s", "")
	require.Equal(t, 202, got.status)
	require.JSONEq(t, `{"sessionId":"s","pending":true,"forks":[]}`, got.body)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(o *httpapi.Options) {
		o.States = snapshot.New(o.Log, &snapshot.StoreOptions{Folds: new(memory.Folds)})
	})
	head := a.append("s", chunk(&eventlog.TextDelta{Delta: "hi", Base: base("s")}))[0]
	for body, reason := range map[string]string{
		`{}`:                         "purgeOlderThan, dropOlderThan or maxBytes is required",
		`{"purgeOlderThan":"a day"}`: "must be a duration",
		`{"purgeOlderThan":"-1h"}`:   "must be a duration",
		`{"dropOlderThan":7}`:        "must be a string",
		`{"maxBytes":0}`:             "must be a whole number",
		`{"maxBytes":"1GiB"}`:        "must be a whole number",
		`[]`:                         "must be a JSON object",
	} {
		require.Contains(t, a.post("/retention", body).failed(t, 400, api.CodeInvalidRequest).Error, reason, body)
	}
	got := a.post("/retention", `{"purgeOlderThan":"0s","dropOlderThan":"0s"}`)
	require.Equal(t, 200, got.status, got.body)
	require.Regexp(t, fmt.Sprintf(`^{"purged":\[{"partition":0,"below":%d,"records":0}\],"dropped":{},"bytes":[1-9]\d*}`, head), got.body,
		"it was sealed just now")
}

func TestRetentionIsForWhoeverMayTouchAllSessions(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(o *httpapi.Options) {
		o.Auth = auth.BearerTokens([]auth.Token{
			{Token: "one", Operations: []string{"*"}, Sessions: []string{"s*"}},
			{Token: "all", Operations: []string{"*"}, Sessions: []string{"*"}},
		})
		o.States = snapshot.New(o.Log, &snapshot.StoreOptions{Folds: new(memory.Folds)})
	})
	a.post("/retention", `{"purgeOlderThan":"0s"}`, "Authorization", "Bearer one").failed(t, 403, api.CodeUnauthorized)
	require.Equal(t, 200, a.post("/retention", `{"purgeOlderThan":"0s"}`, "Authorization", "Bearer all").status)
}
