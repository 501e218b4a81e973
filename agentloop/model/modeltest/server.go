package modeltest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog"
)

// Request is one request that the server got.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server is a provider's stand-in. It closes with the test.
type Server struct {
	URL string // without a path

	server   *httptest.Server
	choose   func([]byte) Stream
	mu       sync.Mutex
	requests []Request
}

// Serve starts a server that answers a request that holds n answers with the
// n-th stream (from 0), or with the last one if there are fewer.
func Serve(t testing.TB, streams ...Stream) *Server {
	t.Helper()
	require.NotEmpty(t, streams)
	return ServeFunc(t, func(body []byte) Stream {
		return streams[min(AssistantMessages(body), len(streams)-1)]
	})
}

// ServeFunc starts a server that answers a request with what choose returns
// for its body. Requests may come at the same time.
func ServeFunc(t testing.TB, choose func(body []byte) Stream) *Server {
	t.Helper()
	s := &Server{choose: choose}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.start(t)
	return s
}

// ServePiped starts a server that answers with a stream, through pipes instead
// of a network: it may be part of a synctest bubble, whose clock stands still
// while client or server work. Only Client reaches it.
func ServePiped(t testing.TB, stream Stream) *Server {
	t.Helper()
	return servePiped(t, func([]byte) Stream { return stream })
}

func servePiped(t testing.TB, choose func(body []byte) Stream) *Server {
	t.Helper()
	s := &Server{choose: choose}
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.server = &httptest.Server{Listener: p, Config: &http.Server{Handler: http.HandlerFunc(s.serve)}}
	s.start(t)
	s.Client().Transport = &http.Transport{DialContext: p.dial}
	return s
}

func (s *Server) start(t testing.TB) {
	s.server.Start()
	s.URL = s.server.URL
	t.Cleanup(func() {
		// An answer that hangs ends with its connection only.
		s.server.CloseClientConnections()
		s.server.Close()
	})
}

// AssistantMessages counts the answers in a request body: messages of the role
// assistant in one of Chat Completions or Messages; runs of what a model says
// in the input of one of Responses. A body that is none has none.
func AssistantMessages(body []byte) int {
	type entry struct{ Role, Type string }
	var request struct{ Messages, Input []entry }
	if json.Unmarshal(body, &request) != nil {
		return 0
	}
	n := 0
	for _, m := range request.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	said := false
	for _, item := range request.Input {
		before := said
		said = item.Role == "assistant" || item.Type == "reasoning" || item.Type == "function_call"
		if said && !before {
			n++
		}
	}
	return n
}

// Client returns a client whose connections close with the server.
func (s *Server) Client() *http.Client { return s.server.Client() }

// Requests returns the requests so far in the order of their arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	s.mu.Unlock()
	s.choose(body).answer(w, r)
}

func (s Stream) answer(w http.ResponseWriter, r *http.Request) {
	if s.Drop {
		wait(r, s.Delay)
		panic(http.ErrAbortHandler) // drops the connection, quietly
	}
	if s.Status != 0 {
		w.Header().Set("Content-Type", cmp.Or(s.ContentType, "application/json"))
		if s.RetryAfter != "" {
			w.Header().Set("Retry-After", s.RetryAfter)
		}
		w.WriteHeader(s.Status)
		_, _ = io.WriteString(w, s.Body)
		return
	}
	w.Header().Set("Content-Type", cmp.Or(s.ContentType, "text/event-stream"))
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for _, e := range s.Events {
		if !wait(r, s.Delay) {
			return
		}
		if e.Type != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", e.Type)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", e.Data)
		_ = flush()
	}
	_, _ = io.WriteString(w, s.Tail)
	_ = flush()
	switch {
	case s.Cut:
		panic(http.ErrAbortHandler) // drops the connection, quietly
	case s.Hang:
		<-r.Context().Done()
	case s.Done:
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

// wait says whether the client is still there after d.
func wait(r *http.Request, d time.Duration) bool {
	return eventlog.Sleep(r.Context(), d) == nil && r.Context().Err() == nil
}

// Words returns an error that the server has caused as it would be with the server's own words
// alone. It checks that the error names the model, the host and the status of the answer, and
// the key if the server does not know it.
func (s *Server) Words(t testing.TB, e *model.Error) model.Error {
	t.Helper()
	where, ok := errors.AsType[*upstream.Error](e.Cause)
	require.True(t, ok, "%v names no server", e)
	require.Equal(t, strings.TrimPrefix(s.URL, "http://"), where.Host)
	require.Equal(t, e.StatusCode, where.Status)
	require.Equal(t, e.Code == model.CodeAuthFailed, where.Check == "model.apiKey" || where.Check == "memory.embedder.apiKey", where.Check)
	before, after, _ := strings.Cut(where.Saying("|", model.MaxErrorText), "|")
	require.Regexp(t, "^(model|embedder) call to [a-z-]+ failed: "+regexp.QuoteMeta(before), e.Message)
	_, words, _ := strings.Cut(e.Message, before)
	require.True(t, strings.HasSuffix(words, after), e.Message)
	return model.Error{Code: e.Code, Message: strings.TrimSuffix(words, after), Retryable: e.Retryable, StatusCode: e.StatusCode, Cause: where.Cause}
}
