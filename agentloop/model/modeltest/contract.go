package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
)

// Adapter is an adapter under its contract.
type Adapter struct {
	// New makes a model named "asked-for".
	New  func(Settings) model.Model
	Root string // the base URL's path after the server's URL
	Path string // that calls are made to
	// Text are the events of an answer that says "Hel" and does not end there.
	Text []string
	// End are the events that follow to its end; Enough of them make it
	// complete, so that the connection may break after them.
	End    []string
	Enough int
	// Environment are variables that the provider's SDK reads; the adapter must not.
	Environment []string
}

// Settings are those that every adapter has.
type Settings struct {
	APIKey, BaseURL string
	Headers         map[string]string
	ProviderOptions map[string]any
	IdleTimeout     time.Duration
	HTTPClient      *http.Client
}

const contractKey = "sk-test-0123456789"

// Contract tests what every adapter promises.
func (a Adapter) Contract(t *testing.T) {
	t.Run("answer", a.testAnswer)
	t.Run("options", a.testOptions)
	t.Run("statuses", a.testStatuses)
	t.Run("retry after", a.testRetryAfter)
	t.Run("redirects", a.testRedirects)
	t.Run("cut", a.testCut)
	t.Run("garbled", a.testGarbled)
	t.Run("idle", a.testIdle)
	t.Run("context", a.testContext)
	t.Run("emit", a.testEmit)
	t.Run("connection", a.testConnection)
	t.Run("stale connection", a.testStaleConnection)
	t.Run("environment", a.testEnvironment)
}

func (a Adapter) on(s *Server) Settings {
	return Settings{APIKey: contractKey, BaseURL: s.URL + a.Root, HTTPClient: s.Client()}
}

// whole is the whole answer.
func (a Adapter) whole() Stream { return Events(append(append([]string{}, a.Text...), a.End...)...) }

// part is its beginning, which ends in good order but for what s says.
func (a Adapter) part(s Stream, end int) Stream {
	s.Events = append(Events(a.Text...).Events, Events(a.End[:end]...).Events...)
	return s
}

func (a Adapter) testAnswer(t *testing.T) {
	s := Serve(t, a.whole())
	answer, got := Ask(t, a.New(a.on(s)), Hello())
	require.Equal(t, "Hel", got.Text)
	require.Equal(t, fact.StopEndTurn, answer.StopReason)
	require.Equal(t, a.Path, s.Requests()[0].Path)

	with := a.on(s)
	with.BaseURL += "/"
	Ask(t, a.New(with), Hello())
	require.Equal(t, a.Path, s.Requests()[1].Path)
}

// testOptions: headers and members of the body are sent along; errors don't show
// the headers.
func (a Adapter) testOptions(t *testing.T) {
	with := func(s *Server) Settings {
		settings := a.on(s)
		settings.Headers = map[string]string{"X-Team": "blue", "X-Gateway": "Basic hunter2-secret"}
		settings.ProviderOptions = map[string]any{"service_tier": "flex", "temperature": 0.25, "metadata": map[string]any{"user_id": "<ada>"}}
		return settings
	}
	s := Serve(t, a.whole())
	Ask(t, a.New(with(s)), Hello())
	got := s.Requests()[0]
	require.Equal(t, "blue", got.Header.Get("X-Team"))
	require.Equal(t, "Basic hunter2-secret", got.Header.Get("X-Gateway"))
	var body map[string]any
	require.NoError(t, json.Unmarshal(got.Body, &body))
	require.Equal(t, "flex", body["service_tier"])
	require.Equal(t, 0.25, body["temperature"])
	require.Equal(t, map[string]any{"user_id": "<ada>"}, body["metadata"])
	require.Equal(t, true, body["stream"])

	refuses := Serve(t, Failure(401, `{"error":{"message":"not hunter2-secret of Basic hunter2-secret"}}`))
	e, _ := AskFor(t, a.New(with(refuses)), Hello())
	require.Equal(t, "not [key] of [key]", refuses.Words(t, e).Message)

	for _, name := range []string{"model", "messages", "stream", "tools", "", "a.b", "a b"} {
		settings := a.on(s)
		settings.ProviderOptions = map[string]any{name: 1}
		require.Panics(t, func() { a.New(settings) }, name)
	}
}

func (a Adapter) testStatuses(t *testing.T) {
	const body = `{"type":"error","error":{"type":"some_error","message":"no luck with ` + contractKey + ` at https://internal/x"}}`
	for status, want := range map[int]model.Error{
		400: {Code: model.CodeInvalidRequest}, 401: {Code: model.CodeAuthFailed}, 403: {Code: model.CodeAuthFailed},
		404: {Code: model.CodeInvalidRequest}, 408: {Code: model.CodeTimeout, Retryable: true},
		413: {Code: model.CodeInvalidRequest}, 429: {Code: model.CodeRateLimited, Retryable: true},
		500: {Code: model.CodeUnavailable, Retryable: true}, 502: {Code: model.CodeUnavailable, Retryable: true},
		503: {Code: model.CodeOverloaded, Retryable: true}, 529: {Code: model.CodeOverloaded, Retryable: true},
	} {
		s := Serve(t, Failure(status, body))
		e, got := AskFor(t, a.New(a.on(s)), Hello())
		want.StatusCode, want.Message = status, "no luck with [key] at [URL]"
		require.Equal(t, want, s.Words(t, e))
		require.Empty(t, got.Events)
		require.Len(t, s.Requests(), 1, "retries are the loop's")
	}
	proxy := Serve(t, Failure(502, "<html>http://proxy.internal/</html>"))
	e, _ := AskFor(t, a.New(a.on(proxy)), Hello())
	require.Equal(t, "Bad Gateway", proxy.Words(t, e).Message)
	refuses := Serve(t, Failure(http.StatusOK, `{"error":{"message":"no","code":401}}`))
	e, _ = AskFor(t, a.New(a.on(refuses)), Hello())
	require.Equal(t, model.Error{Code: model.CodeAuthFailed, Message: "no"}, refuses.Words(t, e))
	e, _ = AskFor(t, a.New(a.on(Serve(t, Failure(http.StatusOK, `{"content":[]}`)))), Hello())
	require.Equal(t, model.CodeProvider, e.Code)
}

// testRetryAfter: an error says for how long the provider asks to be left alone, if that is not too
// long to wait for.
func (a Adapter) testRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "120": model.MaxRetryAfter, "121": 0, "soon": 0, time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		refuses := Failure(429, `{"error":{"message":"slow down"}}`)
		refuses.RetryAfter = header
		e, _ := AskFor(t, a.New(a.on(Serve(t, refuses))), Hello())
		require.Equal(t, model.CodeRateLimited, e.Code)
		require.Equal(t, want, e.RetryAfter, "Retry-After: %s", header)
	}
}

// testRedirects: the conversation, the key and the headers go to the configured
// server only.
func (a Adapter) testRedirects(t *testing.T) {
	other := Serve(t, a.whole())
	for _, status := range []int{301, 302, 303, 304, 307, 308} {
		asked := httptest.NewServer(http.RedirectHandler(other.URL+a.Path, status))
		t.Cleanup(asked.Close)
		for _, client := range []*http.Client{nil, asked.Client()} {
			e, got := AskFor(t, a.New(Settings{
				APIKey: contractKey, BaseURL: asked.URL + a.Root, Headers: map[string]string{"X-Gateway": "secret"}, HTTPClient: client,
			}), Hello())
			require.Empty(t, other.Requests())
			require.Empty(t, got.Events)
			require.Equal(t, model.CodeInvalidRequest, e.Code)
			require.False(t, e.Retryable)
			require.Equal(t, status, e.StatusCode)
			require.Contains(t, e.Message, fmt.Sprintf(" failed: %s answered %d %s: redirects are not followed (check model.baseURL)",
				asked.Listener.Addr(), status, http.StatusText(status)))
		}
	}
}

func (a Adapter) testCut(t *testing.T) {
	for name, stream := range map[string]Stream{
		"closed in good order": a.part(Stream{}, 0),
		"dropped":              a.part(Stream{Cut: true}, 0),
		"within an event":      a.part(Stream{Tail: "event: x\ndata: {\"ty", Cut: true}, 0),
	} {
		t.Run(name, func(t *testing.T) {
			e, got := AskFor(t, a.New(a.on(Serve(t, stream))), Hello())
			require.Equal(t, model.CodeUnavailable, e.Code)
			require.True(t, e.Retryable)
			require.Equal(t, "Hel", got.Text)
		})
	}
	for _, stream := range []Stream{a.part(Stream{}, a.Enough), a.part(Stream{Cut: true}, a.Enough)} {
		answer, got := Ask(t, a.New(a.on(Serve(t, stream))), Hello())
		require.Equal(t, "Hel", got.Text)
		require.Equal(t, fact.StopEndTurn, answer.StopReason)
	}
}

func (a Adapter) testGarbled(t *testing.T) {
	for _, event := range []Event{{Data: `{"broken`}, {Type: "error", Data: `{"broken`}} {
		stream := a.part(Stream{}, 0)
		stream.Events = append(stream.Events, event)
		e, _ := AskFor(t, a.New(a.on(Serve(t, stream))), Hello())
		require.Equal(t, model.CodeProvider, e.Code)
		require.True(t, e.Retryable)
	}
}

func (a Adapter) testIdle(t *testing.T) {
	for name, stream := range map[string]Stream{
		"before the first event": {Hang: true},
		"between events":         a.part(Stream{Hang: true}, 0),
		"within an event":        a.part(Stream{Hang: true, Tail: "data: {"}, 0),
		"in place of a stream":   {Hang: true, ContentType: "application/json", Tail: `{"error":`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				with := a.on(ServePiped(t, stream))
				with.IdleTimeout = time.Minute
				e, _ := AskFor(t, a.New(with), Hello())
				require.Equal(t, model.CodeTimeout, e.Code)
				require.True(t, e.Retryable)
				require.Contains(t, e.Message, "stopped in the middle")
			})
		})
	}
	t.Run("after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			with := a.on(ServePiped(t, a.part(Stream{Hang: true}, a.Enough)))
			with.IdleTimeout = time.Minute
			Ask(t, a.New(with), Hello())
		})
	})

	with := a.on(Serve(t, a.part(Stream{Hang: true}, 0)))
	with.HTTPClient.Timeout = 50 * time.Millisecond
	e, _ := AskFor(t, a.New(with), Hello())
	require.Equal(t, model.CodeTimeout, e.Code)
}

func (a Adapter) testContext(t *testing.T) {
	s := Serve(t, a.part(Stream{Hang: true}, 0))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := a.New(a.on(s)).Generate(ctx, Hello(), func(model.Event) error {
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = a.New(a.on(s)).Generate(ctx, Hello(), nil) // cancelled before
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.Requests(), 1)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = a.New(a.on(s)).Generate(ctx, Hello(), new(Collected).Emit)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, model.CodeTimeout, e.Code)
	require.True(t, e.Retryable)
}

func (a Adapter) testEmit(t *testing.T) {
	stop := errors.New("stop")
	_, err := a.New(a.on(Serve(t, a.part(Stream{Hang: true}, 0)))).Generate(t.Context(), Hello(), func(model.Event) error { return stop })
	require.Same(t, stop, err)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (a Adapter) testConnection(t *testing.T) {
	client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("refused by " + contractKey)
	})}
	e, _ := AskFor(t, a.New(Settings{APIKey: contractKey, BaseURL: "http://secret:secret@away.invalid/secret?key=secret", HTTPClient: client}), Hello())
	require.Equal(t, model.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Error(), " failed: away.invalid: no connection to the provider, or it was lost (check model.baseURL)")
	require.NotContains(t, e.Error(), "secret")
	require.NotContains(t, e.Error(), contractKey)

	for _, base := range []string{"api.example.com", "ftp://x", "http://", "http://[::1", "%"} {
		e, _ := AskFor(t, a.New(Settings{BaseURL: base, HTTPClient: client}), Hello())
		require.Equal(t, model.CodeInvalidRequest, e.Code, base)
		require.False(t, e.Retryable)
	}
	require.Panics(t, func() { a.New(Settings{APIKey: NoName}) })
}

// testStaleConnection: a server may close an idle connection at the moment at
// which it is used again. The request is then sent once more, on another one. A
// connection that is new, or that the server closes when it may have worked on the
// request, fails the call: what is sent again is paid for again.
func (a Adapter) testStaleConnection(t *testing.T) {
	at, late := Stream{Drop: true}, Stream{Drop: true}.After(300*time.Millisecond)
	for name, c := range map[string]struct {
		used     bool // the connection was used before
		answers  []Stream
		fails    bool
		requests int
	}{
		"closed":            {true, []Stream{at, a.whole()}, false, 2},
		"closed twice":      {true, []Stream{at, at, a.whole()}, true, 2},
		"closed after work": {true, []Stream{late, a.whole()}, true, 1},
		"new":               {false, []Stream{at, a.whole()}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := c.answers
				s := servePiped(t, func(body []byte) (next Stream) {
					if len(body) > 0 {
						next, answers = answers[0], answers[1:]
					}
					return next
				})
				if c.used {
					res, err := s.Client().Get(s.URL)
					require.NoError(t, err)
					_, err = io.Copy(io.Discard, res.Body)
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
				}
				if m := a.New(a.on(s)); c.fails {
					e, _ := AskFor(t, m, Hello())
					require.Equal(t, model.CodeUnavailable, e.Code)
				} else {
					_, got := Ask(t, m, Hello())
					require.Equal(t, "Hel", got.Text)
				}
				calls := slices.DeleteFunc(s.Requests(), func(r Request) bool { return len(r.Body) == 0 })
				require.Len(t, calls, c.requests)
				for _, r := range calls {
					require.Equal(t, calls[0].Body, r.Body)
					require.NotContains(t, r.Header, "Idempotency-Key")
				}
			})
		})
	}
}

// NoName, as a key, makes Adapter.New leave the model's name out.
const NoName = "no name"

func (a Adapter) testEnvironment(t *testing.T) {
	for _, name := range a.Environment {
		leak := "leak"
		if strings.HasSuffix(name, "_URL") {
			leak = "http://leak.invalid"
		}
		if strings.HasSuffix(name, "_HEADERS") {
			leak = "X-Leak: leak"
		}
		t.Setenv(name, leak)
	}
	s := Serve(t, a.whole())
	with := a.on(s)
	with.APIKey = ""
	Ask(t, a.New(with), Hello())
	got := s.Requests()[0]
	for name, values := range got.Header {
		require.NotContains(t, strings.Join(values, " "), "leak", name)
	}
	require.NotContains(t, string(got.Body), "leak")
	require.Empty(t, got.Header.Get("Authorization"))
	require.Empty(t, got.Header.Get("X-Api-Key"))
}
