package httpapi_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// TestRecordFilters: a record comes if every filter takes it.
func TestRecordFilters(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	entry := func(agent, run, call string, c eventlog.Chunk) eventlog.Entry {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: run, Call: call})
		require.NoError(t, err)
		e.Agent = agent
		return e
	}
	delta := &eventlog.TextDelta{Delta: "x", Base: base("s")}
	custom := &eventlog.CustomEvent{EventName: "n", Data: json.RawMessage(`1`), Base: base("s")}
	seqs := a.append("s", created("s"), requested("s", "r1"),
		entry("s", "r1", "", delta), entry("s", "r1", "c1", custom), entry("s", "r2", "c1", custom),
		entry("s-sub-1", "r1", "c1", custom), entry("s-sub-1", "r1", "", delta), entry("s", "r1", "", delta))
	dead := seqs[7]
	a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: dead, To: dead}}, Base: factBase("s"),
	}))
	for query, want := range map[string][]int{
		"kind=fact":                          {0, 1, 8},
		"kind=chunk":                         {2, 3, 4, 5, 6},
		"kind=chunk&dead=1":                  {2, 3, 4, 5, 6, 7},
		"type=text_delta":                    {2, 6},
		"type=text_delta&type=run_requested": {1, 2, 6},
		"type=from_tomorrow":                 {},
		"agent=s-sub-1":                      {5, 6},
		"agent=nobody":                       {},
		"run=r1":                             {2, 3, 5, 6},
		"call=c1":                            {3, 4, 5},
		"call=c1&run=r1":                     {3, 5},
		"call=c1&run=r1&agent=s":             {3},
		"kind=fact&call=c1":                  {},
		"kind=chunk&type=run_requested":      {},
		"agent=s&run=r1&dead=1&type=text_delta&type=custom": {2, 3, 7},
		"call=c1&limit=2": {3, 4},
		"call=c1&limit=2&from=" + fmt.Sprint(seqs[3]):             {4, 5},
		"call=c1&to=" + fmt.Sprint(seqs[4]):                       {3, 4},
		"call=c1&limit=3&from=" + fmt.Sprint(seqs[4]) + "&dead=1": {5},
	} {
		got := a.get("/sessions/s/records?" + query)
		require.Equal(t, 200, got.status, got.body)
		sequences := []int{}
		for _, r := range parseRecords(t, got.body) {
			sequences = append(sequences, int(r.Sequence-seqs[0]))
		}
		require.Equal(t, want, sequences, query)
	}

	long := strings.Repeat("x", 1025)
	for _, q := range []string{
		"kind=", "kind=x", "kind=chunk&kind=fact", "type=", "type=a&type=", "type=" + long, "type=%ff", "type=a&type=%ff",
		"agent=", "agent=%00", "agent=" + long, "run=", "run=" + long, "run=a&run=b", "call=", "call=" + long,
		strings.Repeat("type=x&", api.MaxRecordTypes+1), "follow=", "follow=maybe", "follow=1&to=2", "follow=1&dead=0", "follow=1&limit=0",
		"follow=1&from=x", "follow=1&kind=x",
	} {
		a.get("/sessions/s/records?"+q).failed(t, 400, api.CodeInvalidRequest)
	}
	require.Equal(t, 200, a.get("/sessions/s/records?"+strings.Repeat("type=x&", api.MaxRecordTypes)).status)
}

// recordStream is an open /records?follow=1.
type recordStream struct {
	t     *testing.T
	lines *stream
}

func (a *testAPI) follow(target string, headers ...string) recordStream {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.ctx(), "GET", a.http.URL+target, nil)
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.http.Client().Do(req)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { resp.Body.Close() })
	require.Equal(a.t, 200, resp.StatusCode)
	require.Equal(a.t, "application/x-ndjson", resp.Header.Get("Content-Type"))
	return recordStream{a.t, &stream{t: a.t, resp: resp, r: bufio.NewReader(resp.Body)}}
}

// next returns the next record, after any number of heartbeats.
func (s recordStream) next() (r eventlog.Record, heartbeats int, err error) {
	s.t.Helper()
	for {
		line, err := s.lines.r.ReadString('\n')
		switch {
		case err != nil:
			return r, heartbeats, err
		case line == "\n":
			heartbeats++
			continue
		}
		require.NoError(s.t, json.Unmarshal([]byte(line), &r), line)
		return r, heartbeats, nil
	}
}

func (s recordStream) has(want ...uint64) {
	s.t.Helper()
	for _, sequence := range want {
		r, _, err := s.next()
		require.NoError(s.t, err)
		require.Equal(s.t, sequence, r.Sequence)
	}
}

func (s recordStream) ends() {
	s.t.Helper()
	_, _, err := s.next()
	require.ErrorIs(s.t, err, io.EOF)
}

// TestFollowRecords: each record once and in order, what is truncated included,
// across appends and across the end of a stream; a client continues after its
// last one elsewhere.
func TestFollowRecords(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	seqs := a.append("s", created("s"), text("s", "a"), text("s", "b"))
	all := a.follow("/sessions/s/records?follow=1")
	all.has(seqs...)
	texts := a.follow(fmt.Sprintf("/sessions/s/records?follow=1&dead=1&type=text_delta&from=%d", seqs[1]))
	texts.has(seqs[2])
	two := a.follow(fmt.Sprintf("/sessions/s/records?follow=1&limit=2&from=%d", seqs[2]))
	for range 20 { // across the seam, and live
		more := a.append("s", requested("s", fmt.Sprint("run-", time.Now().UnixNano())), text("s", "x"))
		all.has(more...)
		texts.has(more[1])
		seqs = append(seqs, more...)
	}
	two.has(seqs[3:5]...)
	two.ends()
	marker := a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: seqs[2], To: seqs[2]}}, Base: factBase("s"),
	}), ended("s", "1"))
	all.has(marker...)
	a.follow("/sessions/s/records?follow=1").has(append(seqs, marker...)...)

	// A server that closes has the client continue elsewhere.
	a.srv.Close()
	all.ends()
	texts.ends()
	a.get("/sessions/s/records?follow=1").failed(t, 503, api.CodeUnavailable)
	require.NotContains(t, a.logs.String(), "broke off")
	b := newAPIOn(t, a.log, nil)
	again := b.follow(fmt.Sprintf("/sessions/s/records?follow=1&from=%d", marker[0]))
	again.has(marker[1])
	again.has(b.append("s", text("s", "later"))...)
}

func TestFollowRecordsBeats(t *testing.T) {
	a := newAPI(t, func(o *httpapi.Options) { o.Heartbeat = time.Millisecond })
	seqs := a.append("s", created("s"))
	s := a.follow(fmt.Sprintf("/sessions/s/records?follow=1&from=%d", seqs[0]))
	for range 3 { // the headers are there before any record
		line, err := s.lines.r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "\n", line)
	}
	s.has(a.append("s", text("s", "a"))...)
}

func TestFollowRecordsRefuses(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	head := a.append("s", created("s"))[0]
	body := a.get(fmt.Sprintf("/sessions/s/records?follow=1&from=%d", head+1)).failed(t, 416, api.CodeCursorAhead)
	require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	a.get("/sessions/nobody/records?follow=1").failed(t, 404, api.CodeNotFound)
	require.Empty(t, a.request("HEAD", "/sessions/s/records?follow=1", "").body)

	// The end of a session is the end of all who follow it.
	s := a.follow("/sessions/s/records?follow=1")
	s.has(head)
	require.Equal(t, 200, a.request("DELETE", "/sessions/s", "").status)
	s.ends()
	a.get("/sessions/s/records?follow=1").failed(t, 404, api.CodeNotFound)

	for name, log := range map[string]*failing{
		"error": {Log: memory.New(), err: errors.New("disk on fire: secret detail")},
		"panic": {Log: memory.New(), panic: true},
	} {
		t.Run(name, func(t *testing.T) {
			log.after.Store(2)
			a := newAPIOn(t, log, nil)
			a.append("s", created("s"), text("s", "a"), text("s", "b"))
			s := a.follow("/sessions/s/records?follow=1")
			s.has(1, 2)
			s.ends()
			require.Contains(t, a.logs.String(), "stream broke off")
		})
	}
}

// TestFollowRecordsWhileAllowed: a caller that may not read a session any more gets an
// error when it comes back.
func TestFollowRecordsWhileAllowed(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, limitedTo("s"))
	head := a.append("s", created("s"))[0]
	s := a.follow("/sessions/s/records?follow=1", bearer("for s")...)
	s.has(head)
	require.NoError(t, a.srv.Reconfigure(auth.BearerTokens(nil), nil, nil))
	s.ends()
	a.get("/sessions/s/records?follow=1", bearer("for s")...).failed(t, 401, api.CodeUnauthorized)
}

// TestFollowRecordsStuck: a client that takes nothing is dropped.
func TestFollowRecordsStuck(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"))
	dropped := a.stuckOn("/sessions/s/records?follow=1")
	for range 16 {
		a.append("s", text("s", strings.Repeat("x", 1<<20)))
	}
	dropped()
	require.NotContains(t, a.logs.String(), "level=ERROR")
}
