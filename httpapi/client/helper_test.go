package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot"
	folds "github.com/helixd/helixd/snapshot/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.InMemory(m)) }

// within is the longest that a test waits for what must happen.
const within = 2 * time.Minute

func ctxOf(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// server is a helixd on its own log, with the agents echo, gated, asker,
// whose call waits for an approval, and coder, which has a workspace.
type server struct {
	t    *testing.T
	log  eventlog.Log
	http *httptest.Server
	open chan struct{} // lets the model of gated continue

	mu     sync.Mutex
	hits   []hit
	before func(http.ResponseWriter, *http.Request) bool // answers instead of the server; nil: never
}

// hit is a request that reached the server.
type hit struct {
	method, pattern string
	header          http.Header
}

// newLog returns the log of an embedded server.
func newLog(t *testing.T) eventlog.Log {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	return jetstreamtest.Open(t, nc, &jetstream.Options{Server: srv}) // which overwrites erased records at once
}

func newServer(t *testing.T) *server {
	t.Helper()
	return newServerOn(t, newLog(t))
}

func newServerOn(t *testing.T, log eventlog.Log) *server {
	t.Helper()
	s := &server{t: t, log: log, open: make(chan struct{})}
	removing := agentloop.Tool{
		Name: "remove", RequireApproval: agentloop.AlwaysApprove,
		Execute: func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) { return args, nil },
	}
	loop, err := engine.New(log, []agentloop.Agent{
		{Name: "echo", Model: scripted.New([]scripted.Turn{{Text: "hello, you there"}}, nil), InitialState: json.RawMessage(`{"n":0}`)},
		{Name: "gated", Model: modeltest.Gate{Open: s.open}},
		{Name: "asker", Tools: []agentloop.Tool{removing}, Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "rm", Name: "remove", Arguments: json.RawMessage(`{"path":"/x"}`)}}}, {Text: "removed"},
		}, nil)},
		{Name: "coder", Workspace: &agentloop.Workspace{Provider: inmemory.ID}, Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{Name: "workspace_write_file", Arguments: json.RawMessage(`{"path":"a","content":"b"}`)}}}, {Text: "written"},
		}, nil)},
	}, &engine.Options{Workspaces: []workspace.Provider{inmemory.New(nil)}})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	reg := prometheus.NewRegistry()
	promauto.With(reg).NewCounter(prometheus.CounterOpts{Name: "things_total", Help: "Things."}).Inc()
	served, err := httpapi.New(httpapi.Options{
		Gatherer: reg,
		Reload: func(context.Context) (api.Reloaded, error) {
			return api.Reloaded{Agents: []string{"echo"}, NeedsRestart: []string{"listen"}}, nil
		},
		Subscribe: func(_ context.Context, session string, ttl time.Duration) (api.Subscription, error) {
			return api.Subscription{Subject: "helix.live." + session, ExpiresAt: time.Unix(0, 0).Add(ttl).UTC()}, nil
		},
		Unsubscribe: func(context.Context, string) error { return nil },
		Log:         log, Loop: loop, AllowUnauthenticated: true, Version: "v-test", Chat: &chat.Options{}, InterruptObservationDeadline: within,
		States: snapshot.New(log, &snapshot.StoreOptions{Folds: new(folds.Folds)}),
	})
	require.NoError(t, err)
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits = append(s.hits, hit{method: r.Method, pattern: patternOf(r), header: r.Header})
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			served.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		served.Close()
		s.http.Close()
	})
	return s
}

// prefixed serves the same below a path.
func (s *server) prefixed(path string) (url string) {
	s.t.Helper()
	srv := httptest.NewServer(http.StripPrefix(path, s.http.Config.Handler))
	s.t.Cleanup(srv.Close)
	return srv.URL
}

// patternOf returns the pattern of the route that a request is for, or "".
func patternOf(r *http.Request) string {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for _, rt := range httpapi.Routes() {
		pattern := strings.Split(rt.Pattern, "/")
		fits := rt.Method == r.Method && len(pattern) == len(segments)
		for i := 0; fits && i < len(pattern); i++ {
			fits = pattern[i] == segments[i] || strings.HasPrefix(pattern[i], "{")
		}
		if fits {
			return rt.Pattern
		}
	}
	return ""
}

// instead has requests answered by f first, as long as it says that it did.
func (s *server) instead(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// got returns how often a route was asked since the last call.
func (s *server) got(pattern string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hits {
		if h.pattern == pattern {
			n++
		}
	}
	s.hits = nil
	return n
}

// quick returns a client whose retries don't wait long.
func quick(url string) *client.Client {
	return client.New(url, &client.Options{RetryBase: time.Microsecond})
}

func (s *server) client() *client.Client { return quick(s.http.URL) }

func text(session, s string) eventlog.Chunk {
	return &eventlog.TextDelta{Delta: s, Base: eventlog.Base{AgentID: session, AgentType: "writer", Timestamp: 1, Step: 1}}
}

// texts returns n chunks of a session.
func texts(session string, n int) (chunks []eventlog.Chunk) {
	for i := range n {
		chunks = append(chunks, text(session, fmt.Sprintf("text %d of %d", i, n)))
	}
	return chunks
}

// written is a session of an outside producer with n chunks.
func (s *server) written(session string, n int) api.Appended {
	s.t.Helper()
	done, err := s.client().AppendChunks(ctxOf(s.t), session, texts(session, n), client.AppendOptions{})
	require.NoError(s.t, err)
	return done
}

// started runs an agent up to where its stream ends or waits.
func (s *server) started(session, agent string) (started api.Started, last client.Event) {
	s.t.Helper()
	c, ctx := s.client(), ctxOf(s.t)
	started, err := c.Start(ctx, client.StartRequest{SessionID: session, AgentType: agent, Messages: client.Text("hi")})
	require.NoError(s.t, err)
	_, last = s.stream(c, session, 0)
	return started, last
}

// stream reads a stream to its end and returns its texts.
func (s *server) stream(c *client.Client, session string, from uint64) (deltas []string, last client.Event) {
	s.t.Helper()
	for e, err := range c.Stream(ctxOf(s.t), session, from) {
		require.NoError(s.t, err)
		require.Nil(s.t, last, "something follows the last event")
		if chunk, ok := e.(client.ChunkEvent); !ok {
			last = e
		} else if d, ok := chunk.Chunk.(*eventlog.TextDelta); ok {
			require.Greater(s.t, chunk.Sequence, from)
			from = chunk.Sequence
			deltas = append(deltas, d.Delta)
		}
	}
	return deltas, last
}

// refused checks an error answer and returns it.
func refused(t *testing.T, err error, status int, code api.Code) *client.Error {
	t.Helper()
	var e *client.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, status, e.Status, "%v", err)
	require.Equal(t, code, e.Code, "%v", err)
	return e
}

// cutter is a proxy that cuts connections: each after a number of bytes that
// the server has sent, without a word.
type cutter struct {
	listener net.Listener
	target   string
	behind   func(connection int) int
	accepted atomic.Int32
	wg       sync.WaitGroup
}

// newCutter serves until the test's end. after tells of each connection, from
// 0, where it is cut.
func newCutter(t *testing.T, s *server, behind func(int) int) (p *cutter, url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p = &cutter{listener: l, target: s.http.Listener.Addr().String(), behind: behind}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		p.wg.Wait()
	})
	return p, "http://" + l.Addr().String()
}

func (p *cutter) serve() {
	for n := 0; ; n++ {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		up, err := net.Dial("tcp", p.target)
		if err != nil {
			down.Close()
			return
		}
		p.wg.Go(func() {
			defer up.Close()
			defer down.Close()
			_, _ = copyN(down, up, p.behind(n))
		})
		p.wg.Go(func() {
			defer up.Close()
			_, _ = copyN(up, down, 1<<62)
		})
	}
}

// copyN copies at most n bytes as they come.
func copyN(to, from net.Conn, n int) (int, error) {
	buf := make([]byte, 4<<10)
	for n > 0 {
		got, err := from.Read(buf[:min(n, len(buf))])
		if _, failed := to.Write(buf[:got]); err != nil || failed != nil {
			return n, err
		}
		n -= got
	}
	return 0, nil
}
