package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/client"
)

// posts are the calls that change something. Those that are safe are repeated.
var posts = []struct {
	name, route string
	safe        bool
	call        func(context.Context, *client.Client) error
}{
	{"start", "/start", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Start(ctx, client.StartRequest{SessionID: "new", AgentType: "gated", Messages: client.Text("hi")})
		return err
	}},
	{"resume", "/resume", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "waits"})
		return err
	}},
	{"resume with a message", "/resume", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "waits", Messages: client.Text("go on")})
		return err
	}},
	{"resume with a confirmation", "/resume", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "waits", Mode: fact.ModeWithConfirmation, Approved: true})
		return err
	}},
	{"resume from a turn's beginning", "/resume", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Resume(ctx, client.ResumeRequest{SessionID: "waits", Mode: fact.ModeRetry})
		return err
	}},
	{"interrupt", "/interrupt", true, func(ctx context.Context, c *client.Client) error { return c.Interrupt(ctx, "waits", "") }},
	{"abort", "/abort", true, func(ctx context.Context, c *client.Client) error { return c.Abort(ctx, "waits", "") }},
	{"submit", "/submit-tool-result", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.SubmitToolResult(ctx, client.Submission{SessionID: "waits", ToolCallID: "rm", Kind: fact.SubmitApproval})
		return err
	}},
	{"rollback", "/sessions/{id}/rollback", false, func(ctx context.Context, c *client.Client) error {
		records, err := first(c.Records(ctx, "written", client.RecordRange{}))
		if err != nil {
			return err
		}
		_, err = c.Rollback(ctx, "written", client.Target{Sequence: records.Sequence})
		return err
	}},
	{"fork", "/sessions/{id}/fork", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Fork(ctx, "written", client.ForkRequest{})
		return err
	}},
	{"fork with a name", "/sessions/{id}/fork", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Fork(ctx, "written", client.ForkRequest{SessionID: "fork"})
		return err
	}},
	{"chunks", "/sessions/{id}/chunks", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.AppendChunks(ctx, "written", texts("written", 2), client.AppendOptions{})
		return err
	}},
	{"chunks with a key", "/sessions/{id}/chunks", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.AppendChunks(ctx, "written", texts("written", 2), client.AppendOptions{IdempotencyKey: "k"})
		return err
	}},
	{"end", "/sessions/{id}/end", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.End(ctx, "written", nil, client.AppendOptions{})
		return err
	}},
	{"end with a key", "/sessions/{id}/end", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.End(ctx, "written", nil, client.AppendOptions{IdempotencyKey: "k"})
		return err
	}},
	{"fail", "/sessions/{id}/fail", false, func(ctx context.Context, c *client.Client) error {
		_, err := c.Fail(ctx, "written", "x", client.AppendOptions{})
		return err
	}},
	{"fail with a key", "/sessions/{id}/fail", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Fail(ctx, "written", "x", client.AppendOptions{IdempotencyKey: "k"})
		return err
	}},
	{"retain", "/retention", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Retain(ctx, client.Retention{PurgeOlderThan: new(time.Hour)})
		return err
	}},
	{"sweep", "/sweep", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Sweep(ctx, true)
		return err
	}},
	{"reload", "/admin/reload", true, func(ctx context.Context, c *client.Client) error {
		_, err := c.Reload(ctx)
		return err
	}},
}

func first(records func(func(eventlog.Record, error) bool)) (eventlog.Record, error) {
	for r, err := range records {
		return r, err
	}
	return eventlog.Record{}, errors.New("no record")
}

// An answer that is lost has the call repeated only if that is safe. Either
// way the call was carried out once.
func TestAnswersThatAreLost(t *testing.T) {
	for _, tc := range posts {
		t.Run(tc.name, func(t *testing.T) {
			log := eventlog.Log(memory.New())
			if tc.name == "retain" { // it takes a log with segments
				log = newLog(t)
			}
			s := newServerOn(t, log)
			s.written("written", 3)
			s.started("waits", "asker")
			all(t, s.client().AllSessions(ctxOf(t), client.SessionFilter{}))
			var lost atomic.Bool
			served := s.http.Config.Handler
			s.instead(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == "GET" || !lost.CompareAndSwap(false, true) {
					return false
				}
				s.instead(nil)
				served.ServeHTTP(httptest.NewRecorder(), r) // carried out
				panic(http.ErrAbortHandler)                 // and not told
			})
			s.got(tc.route)
			err := tc.call(ctxOf(t), s.client())
			if tc.safe {
				require.NoError(t, err)
				require.Equal(t, 3, s.got(tc.route), "the first try, what its own handler saw, and the second one")
				return
			}
			require.ErrorIs(t, err, client.ErrUnreachable)
			require.Equal(t, 2, s.got(tc.route), "the first try and what its own handler saw")
		})
	}
}

func TestServerErrors(t *testing.T) {
	s := newServer(t)
	s.written("s", 3)
	get := func(ctx context.Context, c *client.Client) error {
		_, err := c.Session(ctx, "s")
		return err
	}
	calls := append(slices.Clone(posts[:1]), posts[2], posts[11])
	calls = append(calls, struct {
		name, route string
		safe        bool
		call        func(context.Context, *client.Client) error
	}{"get", "/sessions/{id}", true, get})
	for _, tc := range calls {
		for status, again := range map[int]bool{
			500: true, 502: true, 503: true, 504: true, 501: false, 400: false, 408: false, 409: false, 429: false, 307: false,
		} {
			var n atomic.Int32
			s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
				n.Add(1)
				answers(w, status, `{"error":"no","code":"X"}`)
				return true
			})
			err := tc.call(ctxOf(t), s.client())
			refused(t, err, status, "X")
			want := 1
			if again && tc.safe {
				want = 4
			}
			require.EqualValues(t, want, n.Load(), "%s answered with %d", tc.name, status)
		}
		if !tc.safe {
			continue
		}
		fails := 3
		s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
			fails--
			if fails >= 0 {
				answers(w, 503, ``)
			}
			return fails >= 0
		})
		require.NoError(t, tc.call(ctxOf(t), s.client()), "%s, at last", tc.name)
	}
}

// What was never sent is sent again, whatever it is.
func TestAServerThatComesBack(t *testing.T) {
	s := newServer(t)
	s.started("waits", "asker")
	dials := 0
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials < 3 {
			address = "127.0.0.1:1" // nobody is there
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	c := client.New(s.http.URL, &client.Options{HTTPClient: &http.Client{Transport: transport}, RetryBase: time.Microsecond})
	_, err := c.Resume(ctxOf(t), client.ResumeRequest{SessionID: "waits", Messages: client.Text("go on")})
	require.NoError(t, err)
	require.Equal(t, 3, dials)
	require.Equal(t, 1, s.got("/resume"))
}

func TestNoRetries(t *testing.T) {
	s := newServer(t)
	s.instead(func(w http.ResponseWriter, _ *http.Request) bool { answers(w, 500, ``); return true })
	_, err := client.New(s.http.URL, &client.Options{MaxRetries: -1}).Status(ctxOf(t), "s")
	refused(t, err, 500, "")
	require.Equal(t, 1, s.got("/status"))
}

// An import continues where a connection broke off; what the caller's own reader
// fails with is the caller's.
func TestImportsAreRepeated(t *testing.T) {
	s := newServer(t)
	s.written("s", 400)
	records := exported(t, s.client(), "s")
	_, err := s.client().Erase(ctxOf(t), "s")
	require.NoError(t, err)
	opened := 0
	breaks := true
	s.instead(func(_ http.ResponseWriter, r *http.Request) bool {
		if breaks {
			breaks = false
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	done, err := s.client().Import(ctxOf(t), "s", func() (io.ReadCloser, error) {
		opened++
		return opens(records)()
	})
	require.NoError(t, err)
	require.Equal(t, 400, done.Records)
	require.Equal(t, 2, opened)

	broken := errors.New("the file can't be read")
	_, err = s.client().Import(ctxOf(t), "s2", func() (io.ReadCloser, error) { return nil, broken })
	require.Equal(t, broken, err)
	opened = 0
	_, err = s.client().Import(ctxOf(t), "s2", func() (io.ReadCloser, error) {
		opened++
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write(records[:100])
			w.CloseWithError(broken)
		}()
		return r, nil
	})
	require.Equal(t, broken, err)
	require.Equal(t, 1, opened)
}

func TestMisuse(t *testing.T) {
	c := quick("ftp://x")
	require.EqualError(t, c.Health(ctxOf(t)), "remote: the agent server's URL is unusable")
	c = quick("http://127.0.0.1:1")
	for _, id := range []string{"", "a\nb", "\xff"} {
		_, err := c.Session(ctxOf(t), id)
		var invalid *eventlog.ValidationError
		require.ErrorAs(t, err, &invalid, "no other route is asked instead")
	}
	_, err := c.Start(ctxOf(t), client.StartRequest{SessionID: "s", AgentType: "a", State: json.RawMessage(`{`)})
	require.EqualError(t, err, "client: the request can't be encoded as JSON")
	_, err = c.AppendChunks(ctxOf(t), "s", texts("s", 1), client.AppendOptions{IdempotencyKey: "a\nb"})
	require.EqualError(t, err, "remote: a header has control characters")
}
