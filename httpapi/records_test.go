package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
)

func parseRecords(t *testing.T, body string) []eventlog.Record {
	t.Helper()
	records := []eventlog.Record{}
	for line := range strings.Lines(body) {
		require.True(t, strings.HasSuffix(line, "\n"))
		var r eventlog.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r), line)
		records = append(records, r)
	}
	return records
}

func TestRecords(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("other", created("other"))
	seqs := a.append("s", created("s"), text("s", "a<b>"), text("s", "dead"), text("s", "c"))
	marker := a.append("s", factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: seqs[2], To: seqs[2]}}, Base: factBase("s"),
	}))[0]
	odd := a.append("s", eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "odd", Agent: "s"}, Payload: []byte("not\nJSON"),
	})[0]

	got := a.get("/sessions/s/records")
	require.Equal(t, 200, got.status)
	require.Equal(t, "application/x-ndjson", got.header.Get("Content-Type"))
	require.Contains(t, got.body, `"delta":"a<b>"`, "as it is")
	records := parseRecords(t, got.body)
	require.Equal(t, created("s").Envelope, records[0].Envelope)
	require.Equal(t, "not\nJSON", string(records[len(records)-1].Payload))

	read := func(query string) []uint64 {
		t.Helper()
		got := a.get("/sessions/s/records?" + query)
		require.Equal(t, 200, got.status, got.body)
		out := []uint64{}
		for _, r := range parseRecords(t, got.body) {
			out = append(out, r.Sequence)
		}
		return out
	}
	alive := []uint64{seqs[0], seqs[1], seqs[3], marker, odd}
	all := []uint64{seqs[0], seqs[1], seqs[2], seqs[3], marker, odd}
	require.Equal(t, alive, read(""))
	require.Equal(t, alive, read("dead=0"))
	require.Equal(t, all, read("dead=1"))
	require.Equal(t, all[:2], read("dead=1&limit=2"))
	require.Equal(t, alive[2:4], read(fmt.Sprintf("from=%d&limit=2", seqs[1])))
	require.Equal(t, all[:4], read(fmt.Sprintf("to=%d", seqs[3])), "what was true there: the marker is later")
	require.Equal(t, all[2:4], read(fmt.Sprintf("from=%d&to=%d", seqs[1], seqs[3])))
	require.Empty(t, read("to=0"))
	require.Empty(t, read(fmt.Sprintf("from=%d", odd)))
	require.Equal(t, alive, read(fmt.Sprintf("to=%d", odd)))
	for from := range odd + 1 {
		for to := from; to <= odd; to++ {
			want := []uint64{}
			if to > from {
				for r, err := range eventlog.Effective(a.ctx(), a.log, "s", from, to) {
					require.NoError(t, err)
					want = append(want, r.Sequence)
				}
			}
			require.Equal(t, want, read(fmt.Sprintf("from=%d&to=%d", from, to)))
		}
	}

	for _, q := range []string{fmt.Sprintf("from=%d", odd+1), fmt.Sprintf("to=%d", odd+1), "from=99&to=3"} {
		body := a.get("/sessions/s/records?"+q).failed(t, 416, api.CodeCursorAhead)
		require.Equal(t, map[string]any{"head": float64(odd)}, body.Detail)
	}
	for _, q := range []string{"from=x", "to=-1", "limit=0", "limit=x", "dead=maybe", "dead=", "from=3&to=2"} {
		a.get("/sessions/s/records?"+q).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get("/sessions/nobody/records").failed(t, 404, api.CodeNotFound)
	head := a.request("HEAD", "/sessions/s/records", "")
	require.Equal(t, 200, head.status)
	require.Empty(t, head.body)
}

// failing is a log whose reads break off.
type failing struct {
	eventlog.Log
	after atomic.Int64 // records
	err   error
	panic bool
}

func (f *failing) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		n := int64(0)
		for r, err := range f.Log.Read(ctx, session, from, to) {
			if n++; n > f.after.Load() {
				if f.panic {
					panic("the log panicked")
				}
				yield(eventlog.Record{}, f.err)
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// TestRecordsBreakOff: what fails in the middle does not look whole.
func TestRecordsBreakOff(t *testing.T) {
	for name, log := range map[string]*failing{
		"error": {Log: memory.New(), err: errors.New("disk on fire: secret detail")},
		"panic": {Log: memory.New(), panic: true},
	} {
		t.Run(name, func(t *testing.T) {
			log.after.Store(2)
			a := newAPIOn(t, log, nil)
			a.append("s", created("s"), text("s", "a"), text("s", "b"))
			conn := dial(t, a)
			_, err := io.WriteString(conn, "GET /sessions/s/records?dead=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
			require.NoError(t, err)
			all, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.NotContains(t, string(all), "\r\n0\r\n\r\n", "the last chunk of an answer")
			require.NotContains(t, string(all), "Content-Length")
			require.Contains(t, a.logs.String(), "level=ERROR")

			log.after.Store(0)
			got := a.get("/sessions/s/records?dead=1")
			require.Equal(t, "internal error", got.failed(t, 500, api.CodeInternalError).Error)
			require.NotContains(t, got.body, "secret")
			a.get("/sse?sessionId=s").failed(t, 500, api.CodeInternalError)
		})
	}
}

// TestStreamBreaksOff: a log that fails in the middle ends the stream without
// an end event.
func TestStreamBreaksOff(t *testing.T) {
	for name, log := range map[string]*failing{
		"error": {Log: memory.New(), err: errors.New("disk on fire")},
		"panic": {Log: memory.New(), panic: true},
	} {
		t.Run(name, func(t *testing.T) {
			log.after.Store(100)
			a := newAPIOn(t, log, nil)
			a.append("s", created("s"), text("s", "a"))
			s := a.stream("/sse?sessionId=s")
			_, got := s.chunk()
			require.Equal(t, "a", got)
			log.after.Store(2)                             // before the append that is read
			a.append("s", text("s", "b"), ended("s", "1")) // the end is judged by a fold, which fails
			_, got = s.chunk()
			require.Equal(t, "b", got)
			_, err := s.event()
			require.ErrorIs(t, err, io.EOF)
			require.Contains(t, a.logs.String(), "stream broke off")
		})
	}
}
