package httpapi_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/integration/testkit"
)

// patience is how long a client of the fuzzed server waits. It is the bubble's
// time, which passes as soon as nothing else can happen: longer than heartbeats
// and deadlines are.
const patience = time.Minute

// fuzzSessions are the sessions that a fuzzed server has: one that has ended,
// those of waitingAgents, one of an outside producer, and one that says a word
// every ten seconds.
var fuzzSessions = []string{"done", "asker", "locator", "parent", "mine", "slow"}

func fuzzAgents() []agentloop.Agent {
	return append(waitingAgents(),
		agentloop.Agent{Name: "done", Model: scripted.New([]scripted.Turn{{Reasoning: "Hm.", Text: "It is done."}}, nil)},
		agentloop.Agent{Name: "slow", Model: scripted.New([]scripted.Turn{{Text: "one two three four "}}, &scripted.Options{Delay: 10 * time.Second})},
	)
}

// fuzzRecord is a record of a session.
type fuzzRecord struct {
	session string
	eventlog.Record
}

// fuzzRecords are the records of fuzzSessions, but for the one that runs, in
// the order of their sequences. They are the same in every process, so that an
// input which fails in one does so in all.
var fuzzRecords = sync.OnceValues(func() (all []fuzzRecord, err error) {
	ctx := context.Background()
	log := memory.New()
	defer log.Close()
	loop, err := engine.New(log, fuzzAgents(), &engine.Options{
		NewID: counted("seed"), Now: func() time.Time { return time.UnixMilli(946_684_000_000) }, // before any bubble's time
	})
	if err != nil {
		return nil, err
	}
	defer loop.Stop()
	for _, name := range fuzzSessions[:4] {
		handle, err := loop.Execute(ctx, engine.StartRequest{
			SessionID: name, AgentType: name, Messages: []agentloop.Input{{Content: "go"}},
		})
		if err == nil {
			_, err = handle.Result(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for loop.Live(name) { // its last records are on their way
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := log.Append(ctx, "mine", 0, []eventlog.Entry{text("mine", "a"), text("mine", "b")}); err != nil {
		return nil, err
	}
	for _, session := range fuzzSessions[:5] {
		for r, err := range log.Read(ctx, session, 0, 0) {
			if err != nil {
				return nil, err
			}
			all = append(all, fuzzRecord{session, r})
		}
	}
	slices.SortFunc(all, func(a, b fuzzRecord) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all, nil
})

// counted returns ids that are the same each time.
func counted(prefix string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprint(prefix, "-", n.Add(1)) }
}

// fuzzWorld is a server on a memory log, in a bubble of testing/synctest.
type fuzzWorld struct {
	t    *testing.T
	log  eventlog.Log
	loop *engine.Loop
	srv  *httpapi.Server
	logs *testkit.Log // of errors
}

// inFuzzWorld calls f in a bubble with a fresh server. It fails if a goroutine is left.
func inFuzzWorld(t *testing.T, f func(w *fuzzWorld)) {
	records, err := fuzzRecords()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		w := &fuzzWorld{t: t, log: memory.New(), logs: new(testkit.Log)}
		heads := map[string]uint64{}
		for _, r := range records {
			last, err := w.log.Append(t.Context(), r.session, heads[r.session], []eventlog.Entry{r.Entry})
			require.NoError(t, err)
			require.Equal(t, r.Sequence, last, "payloads name sequences")
			heads[r.session] = last
		}
		w.loop, err = engine.New(w.log, fuzzAgents(), &engine.Options{NewID: counted("id")})
		require.NoError(t, err)
		reg := prometheus.NewPedanticRegistry()
		w.srv, err = httpapi.New(httpapi.Options{
			Gatherer: reg, Metrics: httpapi.NewMetrics(reg),
			Log: w.log, Loop: w.loop, AllowUnauthenticated: true, Origins: []string{"https://app.example"},
			Chat: &chat.Options{DefaultAgent: "done"}, VerboseValidationErrors: true, Memories: remembering(w.log), Subscribe: subscribing(nil), Unsubscribe: unsubscribing(nil), Reload: reloading(nil),
			ReadModels: foldedRows{w.log},
			Logger:     slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		require.NoError(t, err)
		defer func() {
			w.srv.Close()
			w.loop.Stop()
			require.NoError(t, w.log.Close())
		}()
		_, err = w.loop.Start(t.Context(), engine.StartRequest{
			SessionID: "slow", AgentType: "slow", Messages: []agentloop.Input{{Content: "go"}},
		})
		require.NoError(t, err)
		f(w)
	})
}

// heads are the last sequences of all sessions.
func (w *fuzzWorld) heads() map[string]uint64 {
	heads := map[string]uint64{}
	for session, err := range w.log.Sessions(w.t.Context()) {
		require.NoError(w.t, err)
		heads[session], err = w.log.Head(w.t.Context(), session)
		require.NoError(w.t, err)
	}
	return heads
}

// fuzzAnswer is what a client has got when it leaves.
type fuzzAnswer struct {
	*httptest.ResponseRecorder
	method string
	broken bool // the connection was aborted
}

// ask sends a request as it comes off a connection. ok is false if it is none:
// net/http refuses it.
func (w *fuzzWorld) ask(method, target, headers string, body []byte) (got fuzzAnswer, ok bool) {
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "%s %s HTTP/1.1\r\nHost: localhost\r\n", method, target)
	if !strings.Contains(strings.ToLower(headers), "content-length") && !strings.Contains(strings.ToLower(headers), "transfer-encoding") {
		fmt.Fprintf(&raw, "Content-Length: %d\r\n", len(body))
	}
	for line := range strings.Lines(headers) {
		fmt.Fprintf(&raw, "%s\r\n", strings.TrimSpace(line))
	}
	raw.WriteString("\r\n")
	raw.Write(body)
	req, err := http.ReadRequest(bufio.NewReader(&raw))
	if err != nil {
		return fuzzAnswer{}, false
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	got = fuzzAnswer{ResponseRecorder: httptest.NewRecorder(), method: req.Method}
	defer func() {
		if p := recover(); p != nil {
			require.Equal(w.t, http.ErrAbortHandler, p)
			got.broken = true
		}
	}()
	req.RemoteAddr = "127.0.0.1:1234"
	w.srv.ServeHTTP(got, req.WithContext(ctx))
	return got, true
}
