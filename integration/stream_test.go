package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// follower is an SSE client that reconnects with the last id that it has
// seen, as a browser does.
type follower struct {
	session string
	chunks  []received
	end     json.RawMessage
	err     error
	done    chan struct{}
}

type received struct {
	sequence uint64
	chunk    string
}

func follow(ctx context.Context, base, session string) *follower {
	f := &follower{session: session, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		again := time.NewTicker(3 * time.Millisecond)
		defer again.Stop()
		for f.end == nil && f.err == nil {
			f.connect(ctx, base)
			select {
			case <-ctx.Done():
				f.err = ctx.Err()
			case <-again.C:
			}
		}
	}()
	return f
}

// connect reads one connection to its end.
func (f *follower) connect(ctx context.Context, base string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/sse?sessionId="+url.QueryEscape(f.session), nil)
	if err != nil {
		f.err = err
		return
	}
	if n := len(f.chunks); n > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(f.chunks[n-1].sequence, 10))
	}
	resp, err := client.Do(req)
	if err != nil {
		return // the daemon is down
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusServiceUnavailable {
		return // the session is not there yet, or the daemon is stopping
	}
	if resp.StatusCode != http.StatusOK {
		f.err = fmt.Errorf("status %s", resp.Status)
		return
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 16<<20)
	id, name, data := "", "", ""
	for in.Scan() {
		field, value, _ := strings.Cut(in.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if data != "" {
				f.event(id, name, data)
			}
			id, name, data = "", "", ""
		}
	}
}

func (f *follower) event(id, name, data string) {
	var e struct {
		Type     string
		Chunk    json.RawMessage
		Sequence uint64
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != name {
		f.err = fmt.Errorf("event %s: %s", name, data)
		return
	}
	switch name {
	case "chunk":
		if id != strconv.FormatUint(e.Sequence, 10) {
			f.err = fmt.Errorf("id %s of sequence %d", id, e.Sequence)
		}
		f.chunks = append(f.chunks, received{e.Sequence, string(e.Chunk)})
	case "end", "error":
		f.end = json.RawMessage(data)
	}
}

// records returns the session's records, truncated ones included.
func (d *daemon) records(session string) []eventlog.Record {
	d.t.Helper()
	resp, err := client.Get(d.url + "/sessions/" + strings.ReplaceAll(url.PathEscape(session), ".", "%2E") + "/records?dead=1")
	require.NoError(d.t, err)
	defer resp.Body.Close()
	require.Equal(d.t, http.StatusOK, resp.StatusCode)
	var out []eventlog.Record
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var r eventlog.Record
		require.NoError(d.t, json.Unmarshal(in.Bytes(), &r))
		out = append(out, r)
	}
	require.NoError(d.t, in.Err())
	return out
}

// checkAgainst checks what a client saw of a session against its log: all
// that it got is there, in order, and of what survives it got everything
// exactly once.
func (f *follower) checkAgainst(t *testing.T, records []eventlog.Record) {
	t.Helper()
	require.NoError(t, f.err)
	var dead eventlog.Truncations
	stored := map[uint64]string{}
	var surviving []uint64
	for _, r := range records {
		require.NoError(t, dead.Add(r))
		if r.Kind == eventlog.KindChunk {
			stored[r.Sequence] = string(r.Payload)
		}
	}
	for _, r := range records {
		if r.Kind == eventlog.KindChunk && !dead.Covers(r) {
			surviving = append(surviving, r.Sequence)
		}
	}
	var seen []uint64
	last := uint64(0)
	for _, c := range f.chunks {
		require.Greater(t, c.sequence, last, "in order, and none twice")
		last = c.sequence
		require.Equal(t, stored[c.sequence], c.chunk, "what was shown is in the log")
		if !dead.Covers(recordAt(records, c.sequence)) {
			seen = append(seen, c.sequence)
		}
	}
	require.Equal(t, surviving, seen)
}

func recordAt(records []eventlog.Record, seq uint64) eventlog.Record {
	for _, r := range records {
		if r.Sequence == seq {
			return r
		}
	}
	return eventlog.Record{}
}
