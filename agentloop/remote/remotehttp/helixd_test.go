package remotehttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

// cutter cuts a body off after a number of bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left < len(p) {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// helixd is a server of our own. Its streams are cut off after cut bytes, if
// that is not 0.
type helixd struct {
	*remotehttp.Transport
	log  eventlog.Log
	cut  atomic.Int64
	open chan struct{} // lets the model gated continue
}

const token = "a token of the caller's"

func newHelixd(t *testing.T) *helixd {
	d := &helixd{log: memory.New(), open: make(chan struct{})}
	loop, err := engine.New(d.log, []agentloop.Agent{
		{Name: "gated", Model: modeltest.Gate{Open: d.open}, InitialState: json.RawMessage(`{"n":0}`)},
		{Name: "broken", Model: scripted.New([]scripted.Turn{{
			Err: &model.Error{Code: "provider_auth_failed", Message: "bad key"},
		}}, nil)},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	api, err := httpapi.New(httpapi.Options{Log: d.log, Loop: loop, InterruptObservationDeadline: within, Auth: func(r *http.Request, _ auth.Operation, _ string) error {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return auth.ErrUnauthorized
		}
		return nil
	}})
	require.NoError(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := int(d.cut.Load()); n > 0 && r.URL.Path == "/sse" {
			w = &cutter{w, n}
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		api.Close()
		srv.Close()
	})
	o := quick()
	o.Headers = map[string]string{"Authorization": "Bearer " + token}
	d.Transport = remotehttp.New(srv.URL, o)
	return d
}

func TestAHelixdIsARemoteServer(t *testing.T) {
	d, ctx := newHelixd(t), ctxOf(t)
	_, err := d.Status(ctx, "s")
	require.True(t, remote.IsNotFound(err), "%v", err)
	_, err = d.Start(ctx, remote.StartRequest{SessionID: "s", AgentType: "nobody", Message: "hi"})
	require.True(t, remote.IsNotFound(err), "%v", err)

	req := remote.StartRequest{SessionID: "s", AgentType: "gated", Message: `{"q":1}`, Metadata: map[string]string{"m": "n"}}
	started, err := d.Start(ctx, req)
	require.NoError(t, err)
	require.Equal(t, "s", started.SessionID)
	require.NotEmpty(t, started.RunID)
	again, err := d.Start(ctx, req)
	require.NoError(t, err)
	require.Equal(t, started, again, "idempotent")

	var whole []remote.ChunkEvent
	var last remote.Event
	for e, err := range d.Stream(ctx, "s", 0) {
		require.NoError(t, err)
		c, ok := e.(remote.ChunkEvent)
		if !ok {
			last = e
			continue
		}
		whole = append(whole, c)
		if delta, ok := c.Chunk.(*eventlog.TextDelta); ok && delta.Delta == "first" {
			st, err := d.Status(ctx, "s")
			require.NoError(t, err)
			require.Equal(t, remote.StatusRunning, st.Status)
			require.True(t, st.IsExecuting)
			require.Equal(t, started.RunID, st.RunID)
			require.GreaterOrEqual(t, st.LatestSequence, c.Sequence)
			close(d.open)
		}
	}
	require.Equal(t, remote.EndEvent{Output: json.RawMessage(`"first, second"`), State: json.RawMessage(`{"n":0}`)}, last)
	var stored []remote.ChunkEvent
	for r, err := range eventlog.Effective(ctx, d.log, "s", 0, 0) {
		require.NoError(t, err)
		if r.Kind == eventlog.KindChunk {
			c, err := eventlog.DecodeChunk(r.Payload)
			require.NoError(t, err)
			stored = append(stored, remote.ChunkEvent{Sequence: r.Sequence, Chunk: c, Raw: json.RawMessage(r.Payload)})
		}
	}
	require.Equal(t, stored, whole, "what the log has, byte for byte")

	middle := len(whole) / 2
	got := collect(t, d.Stream(ctx, "s", whole[middle-1].Sequence))
	require.NoError(t, got.err)
	require.Len(t, got.seqs, len(whole)-middle)
	require.Equal(t, whole[middle].Sequence, got.seqs[0])
	require.Equal(t, last, got.last)

	st, err := d.Status(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, remote.StatusCompleted, st.Status)
	require.Equal(t, `"first, second"`, string(st.Output))
	got = collect(t, d.Stream(ctx, "s", st.LatestSequence))
	require.Equal(t, seen{last: last}, got, "latestSequence is usable as a cursor")
	_, err = d.Start(ctx, req)
	require.True(t, remote.IsAlreadyCompleted(err), "%v", err)
	_, err = d.Resume(ctx, remote.ResumeRequest{SessionID: "s"})
	require.True(t, remote.IsAlreadyCompleted(err), "%v", err)
	got = collect(t, d.Stream(ctx, "s", st.LatestSequence+1))
	var refused *remote.Error
	require.ErrorAs(t, got.err, &refused)
	require.Equal(t, "CURSOR_AHEAD", refused.Code)
}

// However a stream is cut off, following it yields the same.
func TestFollowAHelixdAcrossCuts(t *testing.T) {
	d, ctx := newHelixd(t), ctxOf(t)
	close(d.open)
	_, err := d.Start(ctx, remote.StartRequest{SessionID: "s", AgentType: "gated", Message: "hi"})
	require.NoError(t, err)
	want := collect(t, remote.Follow(ctx, d, "s", 0, remote.FollowOptions{}))
	require.NoError(t, want.err)
	require.IsType(t, remote.EndEvent{}, want.last)

	longest := 0
	for r, err := range d.log.Read(ctx, "s", 0, 0) {
		require.NoError(t, err)
		longest = max(longest, len(r.Payload)+100)
	}
	for _, cut := range []int{longest, longest + 1, longest + 37, 2*longest + 5} {
		d.cut.Store(int64(cut))
		got := collect(t, remote.Follow(ctx, d, "s", 0, remote.FollowOptions{RetryBase: 1}))
		require.Equal(t, want, got, fmt.Sprintf("cut after %d bytes", cut))
	}
	d.cut.Store(10)
	got := collect(t, remote.Follow(ctx, d, "s", 0, remote.FollowOptions{RetryBase: 1}))
	require.ErrorIs(t, got.err, remote.ErrStreamDropped)
}

func TestAHelixdWhoseSessionFails(t *testing.T) {
	d, ctx := newHelixd(t), ctxOf(t)
	_, err := d.Start(ctx, remote.StartRequest{SessionID: "s", AgentType: "broken", Message: "hi"})
	require.NoError(t, err)
	got := collect(t, remote.Follow(ctx, d, "s", 0, remote.FollowOptions{}))
	require.NoError(t, got.err)
	require.Equal(t, remote.ErrorEvent{Error: "bad key"}, got.last)
	st, err := d.Status(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, remote.StatusFailed, st.Status)
	require.Equal(t, "bad key", st.Error)
}

func TestAHelixdIsInterruptedResumedAndAborted(t *testing.T) {
	d, ctx := newHelixd(t), ctxOf(t)
	stops := func(stop func(context.Context, string, string) error, from uint64) (remote.Event, uint64) {
		t.Helper()
		for e, err := range remote.Follow(ctx, d, "s", from, remote.FollowOptions{}) {
			require.NoError(t, err)
			c, ok := e.(remote.ChunkEvent)
			if !ok {
				return e, from
			}
			from = c.Sequence
			if delta, ok := c.Chunk.(*eventlog.TextDelta); ok && delta.Delta == "first" {
				require.NoError(t, stop(ctx, "s", "lunch"))
			}
		}
		return nil, from
	}
	_, err := d.Start(ctx, remote.StartRequest{SessionID: "s", AgentType: "gated", Message: "hi"})
	require.NoError(t, err)
	last, seen := stops(d.Interrupt, 0)
	require.Equal(t, remote.EndEvent{Status: remote.StatusInterrupted}, last)
	st, err := d.Status(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, remote.StatusInterrupted, st.Status)

	resumed, err := d.Resume(ctx, remote.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.NotEqual(t, st.RunID, resumed.RunID)
	last, _ = stops(d.Abort, seen)
	require.IsType(t, remote.ErrorEvent{}, last)
	st, err = d.Status(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, remote.StatusFailed, st.Status)
	require.True(t, remote.IsNotFound(d.Interrupt(ctx, "nobody", "")))
}
