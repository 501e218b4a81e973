package remotehttp_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within is the longest that a test waits for what must happen.
const within = 2 * time.Minute

// quick are options whose retries don't wait long.
func quick() *remotehttp.Options { return &remotehttp.Options{RetryBaseDelay: time.Microsecond} }

// call is a request that a server got.
type call struct {
	method, uri, body string
	length            int64
	header            http.Header
}

// server is an agent server that does what a test says. The answers of a
// route are given in turn; the last one again and again.
type server struct {
	t    *testing.T
	http *httptest.Server

	mu      sync.Mutex
	answers map[string][]http.HandlerFunc
	calls   map[string][]call
}

func newServer(t *testing.T) *server {
	s := &server{t: t, answers: map[string][]http.HandlerFunc{}, calls: map[string][]call{}}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

func (s *server) on(route string, answers ...http.HandlerFunc) { s.answers[route] = answers }

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	route := r.URL.Path
	s.calls[route] = append(s.calls[route], call{r.Method, r.RequestURI, string(body), r.ContentLength, r.Header})
	answers := s.answers[route]
	if len(answers) > 1 {
		s.answers[route] = answers[1:]
	}
	s.mu.Unlock()
	if len(answers) == 0 {
		http.NotFound(w, r)
		return
	}
	answers[0](w, r)
}

// got returns the requests of a route.
func (s *server) got(route string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[route]
}

// from returns the sequences that streams were asked for.
func (s *server) from() []string {
	var all []string
	for _, c := range s.got("/sse") {
		all = append(all, c.uri)
	}
	return all
}

func sseURI(session, from string) string {
	return "/sse?fromSequence=" + from + "&sessionId=" + session
}

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// breaks closes the connection without an answer. It is for POST: net/http
// repeats a GET on its own if the connection was used before.
func breaks(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// streams answers with an event stream that ends after these parts, in a
// clean way.
func streams(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		http.NewResponseController(w).Flush()
		for _, part := range parts {
			io.WriteString(w, part)
			http.NewResponseController(w).Flush()
		}
	}
}

// drops is streams with a connection that is cut.
func drops(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		streams(parts...)(w, r)
		panic(http.ErrAbortHandler)
	}
}

// text is the event of a text delta.
func text(seq int, delta string) string {
	return fmt.Sprintf("id: %d\nevent: chunk\ndata: {\"type\":\"chunk\",\"chunk\":%s,\"sequence\":%d}\n\n", seq, rawText(delta), seq)
}

func rawText(delta string) string {
	return fmt.Sprintf(`{"type":"text_delta","delta":%q,"agentId":"s","agentType":"a","timestamp":1,"step":1}`, delta)
}

const end = "event: end\ndata: {\"type\":\"end\",\"output\":42,\"state\":{\"n\":1}}\n\n"

func status(name string, latest int) http.HandlerFunc {
	return says(200, fmt.Sprintf(`{"sessionId":"s","status":%q,"output":42,"state":{"n":1},"error":"it broke","latestSequence":%d}`, name, latest))
}

// seen is what an iteration yielded.
type seen struct {
	seqs  []uint64
	texts []string
	last  remote.Event // nil: none
	err   error
}

func collect(t *testing.T, events iter.Seq2[remote.Event, error]) seen {
	t.Helper()
	var s seen
	for e, err := range events {
		require.Nil(t, s.last, "something follows the last event")
		require.NoError(t, s.err, "something follows the error")
		if err != nil {
			require.Nil(t, e)
			s.err = err
			continue
		}
		c, ok := e.(remote.ChunkEvent)
		if !ok {
			s.last = e
			continue
		}
		s.seqs = append(s.seqs, c.Sequence)
		delta := c.Chunk.Type()
		if d, ok := c.Chunk.(*eventlog.TextDelta); ok {
			delta = d.Delta
		}
		s.texts = append(s.texts, delta)
	}
	return s
}

func ctxOf(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}
