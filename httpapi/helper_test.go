package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// within is the longest that a test waits for what must happen.
const within = 2 * time.Minute

// testAPI is its own server, on its own log.
type testAPI struct {
	t    *testing.T
	log  eventlog.Log
	loop *engine.Loop
	srv  *httpapi.Server
	http *httptest.Server
	logs *testkit.Log
	reg  *prometheus.Registry
	late atomic.Int64 // how far the loop's clock is ahead
}

// newLog returns the log of an embedded server.
func newLog(t *testing.T) eventlog.Log {
	t.Helper()
	log, _ := newLogAndConn(t)
	return log
}

// newLogAndConn also returns a client's connection to the server.
func newLogAndConn(t *testing.T) (eventlog.Log, *nats.Conn) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Server: srv}) // which overwrites erased records at once
	return log, nc
}

func newAPI(t *testing.T, change ...func(*httpapi.Options)) *testAPI {
	t.Helper()
	return newAPIOn(t, newLog(t), nil, change...)
}

// newAPIOn serves a log with some agents.
func newAPIOn(t *testing.T, log eventlog.Log, agents []agentloop.Agent, change ...func(*httpapi.Options)) *testAPI {
	t.Helper()
	a := &testAPI{t: t, log: log, logs: new(testkit.Log), reg: prometheus.NewPedanticRegistry()}
	loop, err := engine.New(log, agents, &engine.Options{
		Logger:     slog.New(slog.NewTextHandler(a.logs, nil)),
		Now:        func() time.Time { return time.Now().Add(time.Duration(a.late.Load())) },
		Workspaces: []workspace.Provider{inmemory.New(nil), broken{inmemory.New(nil)}},
	})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	a.loop = loop
	o := httpapi.Options{
		Log: log, Loop: loop, AllowUnauthenticated: true, Version: "v-test",
		Logger: slog.New(slog.NewTextHandler(a.logs, nil)), Subscribe: subscribing(nil), Unsubscribe: unsubscribing(nil), Reload: reloading(nil),
		Gatherer: a.reg, Metrics: httpapi.NewMetrics(a.reg), InterruptObservationDeadline: within,
	}
	for _, f := range change {
		f(&o)
	}
	a.srv, err = httpapi.New(o)
	require.NoError(t, err)
	a.http = httptest.NewServer(a.srv)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the server's log:\n" + a.logs.String())
		}
		a.srv.Close()
		a.http.Close()
	})
	return a
}

// broken is a kind of workspaces that can't be opened, and of which those of
// "large" take long to be removed.
type broken struct{ *inmemory.Provider }

func (broken) ID() string { return "broken" }

func (broken) Open(context.Context, workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	return nil, nil, errors.New("no room")
}

func (b broken) Remove(ctx context.Context, root string) (int, error) {
	if root == "large" {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return b.Provider.Remove(ctx, root)
}

// coder has a workspace of a kind, and writes a file.
func coder(kind string) agentloop.Agent {
	write := scripted.Call{Name: "workspace_write_file", Arguments: json.RawMessage(`{"path":"a","content":"b"}`)}
	return agentloop.Agent{
		Name: kind + "-coder", Workspace: &agentloop.Workspace{Provider: kind},
		Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{write}}, {Text: "written"}}, nil),
	}
}

func (a *testAPI) ctx() context.Context {
	ctx, cancel := context.WithTimeout(a.t.Context(), within)
	a.t.Cleanup(cancel)
	return ctx
}

// append appends to a session after its head and returns the sequences.
func (a *testAPI) append(session string, entries ...eventlog.Entry) []uint64 {
	a.t.Helper()
	head, err := a.log.Head(a.ctx(), session)
	if !errors.Is(err, eventlog.ErrSessionNotFound) {
		require.NoError(a.t, err)
	}
	last, err := a.log.Append(a.ctx(), session, head, entries)
	require.NoError(a.t, err)
	seqs := make([]uint64, len(entries))
	for i := range seqs {
		seqs[i] = last - uint64(len(entries)-1-i)
	}
	return seqs
}

func base(session string) eventlog.Base {
	return eventlog.Base{AgentID: session, AgentType: "writer", Timestamp: 1, Step: 1}
}

func factBase(session string) fact.Base {
	return fact.Base{SessionID: session, Timestamp: 1}
}

func chunk(c eventlog.Chunk) eventlog.Entry {
	e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
	if err != nil {
		panic(err)
	}
	return e
}

func text(session, s string) eventlog.Entry {
	return chunk(&eventlog.TextDelta{Delta: s, Base: base(session)})
}

func factOf(session string, f fact.Fact) eventlog.Entry {
	e, err := eventlog.NewFact(session, f, eventlog.Labels{})
	if err != nil {
		panic(err)
	}
	return e
}

func created(session string) eventlog.Entry {
	return factOf(session, &fact.SessionCreated{
		AgentType: "writer", State: json.RawMessage(`{"n":1}`), Base: factBase(session),
	})
}

func requested(session, run string) eventlog.Entry {
	return factOf(session, &fact.RunRequested{RunID: run, Mode: fact.ModeStart, Base: factBase(session)})
}

func ended(session, output string) eventlog.Entry {
	return factOf(session, &fact.StreamEnd{StreamID: session, Timestamp: 1, FinalOutput: json.RawMessage(output)})
}

// answer is an HTTP answer that was read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r answer) decode(t *testing.T, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.body), v), r.body)
}

// failed checks an error answer.
func (r answer) failed(t *testing.T, status int, code api.Code) api.ErrorBody {
	t.Helper()
	require.Equal(t, status, r.status, r.body)
	var body api.ErrorBody
	r.decode(t, &body)
	require.Equal(t, code, body.Code, r.body)
	require.NotEmpty(t, body.Error)
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.NotEmpty(t, body.RequestID)
	require.Equal(t, r.header.Get("X-Request-Id"), body.RequestID)
	body.RequestID = "" // another one each time
	return body
}

func (a *testAPI) request(method, target, body string, headers ...string) answer {
	a.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(a.ctx(), method, a.http.URL+target, in)
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := a.http.Client().Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	return answer{resp.StatusCode, resp.Header, string(got)}
}

func (a *testAPI) get(target string, headers ...string) answer {
	a.t.Helper()
	return a.request("GET", target, "", headers...)
}

func (a *testAPI) post(target, body string, headers ...string) answer {
	a.t.Helper()
	return a.request("POST", target, body, headers...)
}

// sseEvent is an event as a client reads it. A comment has no other field.
type sseEvent struct {
	id, name, data, comment, retry string
}

// stream is an open /sse.
type stream struct {
	t      *testing.T
	resp   *http.Response
	r      *bufio.Reader
	cancel context.CancelFunc
}

func (a *testAPI) stream(target string, headers ...string) *stream {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.ctx())
	a.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", a.http.URL+target, nil)
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.http.Client().Do(req)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { resp.Body.Close() })
	require.Equal(a.t, 200, resp.StatusCode)
	require.Equal(a.t, "text/event-stream", resp.Header.Get("Content-Type"))
	return &stream{t: a.t, resp: resp, r: bufio.NewReader(resp.Body), cancel: cancel}
}

// event reads the next event; io.EOF is a clean end of the body.
func (s *stream) event() (sseEvent, error) {
	var e sseEvent
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return e, nil
		}
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data += value
		case "":
			e.comment = value
		case "retry":
			e.retry = value
		default:
			return e, fmt.Errorf("line %q", line)
		}
	}
}

func (s *stream) next() sseEvent {
	s.t.Helper()
	e, err := s.event()
	require.NoError(s.t, err)
	return e
}

// chunk reads the next event, comments left out, which is a chunk, and returns
// its sequence and content: a text delta, or the type of another chunk.
func (s *stream) chunk() (uint64, string) {
	s.t.Helper()
	e := s.next()
	for e.comment != "" {
		e = s.next()
	}
	return chunkOf(s.t, e)
}

func chunkOf(t *testing.T, e sseEvent) (uint64, string) {
	t.Helper()
	require.Equal(t, "chunk", e.name, "%+v", e)
	var data struct {
		Type     string
		Chunk    struct{ Type, Delta string }
		Sequence uint64
	}
	require.NoError(t, json.Unmarshal([]byte(e.data), &data), e.data)
	require.Equal(t, "chunk", data.Type)
	require.Equal(t, fmt.Sprint(data.Sequence), e.id)
	if data.Chunk.Type == "text_delta" {
		return data.Sequence, data.Chunk.Delta
	}
	return data.Sequence, data.Chunk.Type
}

// rest reads to the end event and returns the chunks before it.
func (s *stream) rest() (seqs []uint64, texts []string, end sseEvent) {
	s.t.Helper()
	for {
		e := s.next()
		if e.comment != "" {
			continue
		}
		if e.name != "chunk" {
			require.Empty(s.t, e.id, "only chunks have ids")
			after, err := s.event()
			for after.comment == "heartbeat" { // one that was due while the stream was being closed
				after, err = s.event()
			}
			require.ErrorIs(s.t, err, io.EOF, "the stream is closed after %s", e.name)
			return seqs, texts, e
		}
		seq, text := chunkOf(s.t, e)
		seqs, texts = append(seqs, seq), append(texts, text)
	}
}
