package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

// These tests have their own clock. A network can't be part of that: the
// server is called, and writes to a client in this process.

// sent is what a client was sent, and when.
type sent struct {
	at    time.Duration
	event string
}

// clocked is a client that notes when it is sent what.
type clocked struct {
	header http.Header
	began  time.Time
	takes  func(event string) // nil: no time

	mu  sync.Mutex
	got []sent
}

func (c *clocked) Header() http.Header { return c.header }
func (c *clocked) WriteHeader(int)     {}
func (c *clocked) Flush()              {}

// Write takes what is written at once, which may be several events.
func (c *clocked) Write(b []byte) (int, error) {
	for one := range strings.SplitAfterSeq(string(b), "\n\n") {
		if one == "" {
			continue
		}
		if err := c.take(one); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (c *clocked) take(written string) error {
	event, _, _ := strings.Cut(written, "\n")
	if _, data, ok := strings.Cut(written, "data: "); ok {
		var d struct {
			Type, Status string
			Chunk        struct{ Delta string }
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return err
		}
		event = d.Chunk.Delta
		if d.Type != "chunk" {
			event = strings.TrimSpace(d.Type + " " + d.Status)
		}
	}
	c.mu.Lock()
	c.got = append(c.got, sent{time.Since(c.began), event})
	c.mu.Unlock()
	if c.takes != nil {
		c.takes(event)
	}
	return nil
}

func (c *clocked) events() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]sent(nil), c.got...)
}

// inTime runs a test of a server whose clock is the test's.
func inTime(t *testing.T, o httpapi.Options, test func(t *testing.T, log eventlog.Log, srv *httpapi.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		loop, err := engine.New(log, nil, nil)
		require.NoError(t, err)
		o.Log, o.Loop, o.AllowUnauthenticated = log, loop, true
		srv, err := httpapi.New(o)
		require.NoError(t, err)
		test(t, log, srv)
		srv.Close()
		loop.Stop()
		log.Close()
	})
}

// writes appends entries, each some time after the one before.
func writes(t *testing.T, log eventlog.Log, session string, after time.Duration, entries ...eventlog.Entry) {
	t.Helper()
	for _, e := range entries {
		time.Sleep(after)
		head, _ := log.Head(t.Context(), session)
		_, err := log.Append(t.Context(), session, head, []eventlog.Entry{e})
		require.NoError(t, err)
	}
}

// replays answers a client until there is no more, or the client leaves.
func replays(ctx context.Context, srv *httpapi.Server, query string, takes func(string)) *clocked {
	c := &clocked{header: http.Header{}, began: time.Now(), takes: takes}
	srv.ServeHTTP(c, httptest.NewRequest("GET", "http://localhost/sessions/s/replay?"+query, nil).WithContext(ctx))
	return c
}

// TestReplayKeepsTime: chunks come at the distances of their records, divided by the
// speed and bounded; facts between them take no time.
func TestReplayKeepsTime(t *testing.T) {
	inTime(t, httpapi.Options{Heartbeat: time.Hour}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		writes(t, log, "s", time.Minute, created("s"), text("s", "a"))
		writes(t, log, "s", 100*time.Millisecond, text("s", "b"), requested("s", "r"), text("s", "c"))
		writes(t, log, "s", 0, text("s", "d"))
		writes(t, log, "s", 10*time.Second, text("s", "e"), ended("s", "1"))
		const ms = time.Millisecond
		for query, want := range map[string][]time.Duration{ // of a to e
			"":                              {0, 100 * ms, 300 * ms, 300 * ms, 2300 * ms},
			"speed=2":                       {0, 50 * ms, 150 * ms, 150 * ms, 2150 * ms},
			"speed=0.5":                     {0, 200 * ms, 600 * ms, 600 * ms, 2600 * ms},
			"maxPause=150":                  {0, 100 * ms, 250 * ms, 250 * ms, 400 * ms},
			"maxPause=60000":                {0, 100 * ms, 300 * ms, 300 * ms, 10300 * ms},
			"speed=10&maxPause=600000":      {0, 10 * ms, 30 * ms, 30 * ms, 1030 * ms},
			"speed=0.01&maxPause=600000":    {0, 10000 * ms, 30000 * ms, 30000 * ms, 630000 * ms},
			"speed=1&maxPause=0":            {0, 0, 0, 0, 0},
			"speed=0":                       {0, 0, 0, 0, 0},
			"speed=0&maxPause=600000":       {0, 0, 0, 0, 0},
			"speed=1000&maxPause=600000":    {0, 100 * ms / 1000, 300 * ms / 1000, 300 * ms / 1000, 10300 * ms / 1000},
			"speed=1&maxPause=50&to=999999": nil,
		} {
			got := replays(t.Context(), srv, query, nil).events()
			if want == nil {
				require.Len(t, got, 1, "a refusal")
				continue
			}
			for i, event := range []string{"a", "b", "c", "d", "e", "end"} {
				require.Equal(t, sent{want[min(i, 4)], event}, got[i], query)
			}
		}
	})
}

// TestReplayOfImported: what counts is when records were first stored.
func TestReplayOfImported(t *testing.T) {
	inTime(t, httpapi.Options{}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i, e := range []eventlog.Entry{created("s"), text("s", "a"), text("s", "b"), text("s", "c")} {
			e.Origin = eventlog.Origin{Sequence: uint64(i + 1), Time: began.Add([]time.Duration{0, 1, 2, 0}[i] * time.Second)}
			writes(t, log, "s", 0, e)
		}
		require.Equal(t, []sent{{0, "a"}, {time.Second, "b"}, {time.Second, "c"}, {time.Second, "end active"}},
			replays(t.Context(), srv, "", nil).events(), "a clock that was set back does not hold it up")
	})
}

// TestReplayBeats: a long pause is not silent.
func TestReplayBeats(t *testing.T) {
	inTime(t, httpapi.Options{Heartbeat: 15 * time.Second}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		writes(t, log, "s", 40*time.Second, created("s"), text("s", "a"), text("s", "b"))
		const s = time.Second
		require.Equal(t, []sent{{0, "a"}, {15 * s, ": heartbeat"}, {30 * s, ": heartbeat"}, {40 * s, "b"}, {40 * s, "end active"}},
			replays(t.Context(), srv, "maxPause=600000", nil).events())
	})
}

// TestReplayToALateClient: who was held up is not sent faster than it was said.
func TestReplayToALateClient(t *testing.T) {
	inTime(t, httpapi.Options{}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		writes(t, log, "s", time.Second, created("s"), text("s", "a"), text("s", "b"), text("s", "c"), text("s", "d"))
		got := replays(t.Context(), srv, "", func(event string) {
			if event == "a" {
				time.Sleep(10 * time.Second)
			}
		}).events()
		const s = time.Second
		require.Equal(t, []sent{{0, "a"}, {10 * s, "b"}, {11 * s, "c"}, {12 * s, "d"}, {12 * s, "end active"}}, got)
	})
}

// TestReplayIsLeft: whatever ends a replay in the middle of a pause ends it at once, and
// leaves nothing: the clock's test checks that.
func TestReplayIsLeft(t *testing.T) {
	allow := func(err error) auth.Authenticator {
		return func(*http.Request, auth.Operation, string) error { return err }
	}
	inTime(t, httpapi.Options{Heartbeat: time.Hour, Auth: allow(nil)}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		writes(t, log, "s", time.Minute, created("s"), text("s", "a"), text("s", "b"), text("s", "c"))
		const query = "maxPause=600000"

		ctx, leave := context.WithTimeout(t.Context(), 90*time.Second)
		defer leave()
		began := time.Now()
		require.Equal(t, []sent{{0, "a"}, {time.Minute, "b"}}, replays(ctx, srv, query, nil).events())
		require.Equal(t, 90*time.Second, time.Since(began), "the client has left")

		// Nor is it sent to a caller that may not read it any more.
		time.AfterFunc(90*time.Second, func() { assert.NoError(t, srv.Reconfigure(allow(auth.ErrForbidden), nil, nil)) })
		began = time.Now()
		require.Equal(t, []sent{{0, "a"}, {time.Minute, "b"}}, replays(t.Context(), srv, query, nil).events())
		require.Equal(t, 90*time.Second, time.Since(began))
		require.NoError(t, srv.Reconfigure(allow(nil), nil, nil))

		// Erased records are not sent any more.
		got := replays(t.Context(), srv, query, func(event string) {
			if event == "b" {
				_, err := log.Erase(t.Context(), "s")
				require.NoError(t, err)
			}
		}).events()
		require.Equal(t, []sent{{0, "a"}, {time.Minute, "b"}}, got)

		writes(t, log, "s", time.Minute, created("s"), text("s", "a"), text("s", "b"))
		time.AfterFunc(30*time.Second, srv.Close)
		got = replays(t.Context(), srv, query, nil).events()
		require.Len(t, got, 2)
		require.Equal(t, sent{30 * time.Second, ": the server is closing"}, got[1], "with words to come back")
	})
}

// TestManyReplays: they share nothing that one could hold up.
func TestManyReplays(t *testing.T) {
	inTime(t, httpapi.Options{}, func(t *testing.T, log eventlog.Log, srv *httpapi.Server) {
		writes(t, log, "s", time.Second, created("s"), text("s", "a"), text("s", "b"), text("s", "c"))
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				c := replays(t.Context(), srv, fmt.Sprint("speed=", i+1), nil)
				if got := c.events(); len(got) != 4 || got[2].at != 2*(time.Second/time.Duration(i+1)) {
					t.Errorf("at %d times the speed: %v", i+1, got)
				}
			})
		}
		wg.Wait()
	})
}
