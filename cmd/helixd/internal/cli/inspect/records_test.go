package inspect

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// Filters are the daemon's; what it sends to keep a connection is not shown.
func TestRecordsFollow(t *testing.T) {
	const two = `{"sequence":7,"kind":"fact","type":"stream_paused","agent":"s","data":{"type":"stream_paused","reason":"\u001b[2J\u009b"}}` + "\n\n\n" +
		`{"sequence":9,"kind":"chunk","type":"custom","agent":"s","data":{"type":"custom","eventName":"x"}}` + "\n"
	var asked []string
	args := []string{
		"records", "s", "--from", "5", "--kind", "fact", "--type", "a", "--type", "b", "--agent", "s", "--run", "r", "--call", "c", "--follow",
	}
	out, err := told(t, answering(&asked, map[string]string{"/sessions/s/records": two}), args...)
	require.ErrorContains(t, err, "the connection was lost; resume with --from 9")
	require.Equal(t, []string{"/sessions/s/records?agent=s&call=c&follow=1&from=5&kind=fact&run=r&type=a&type=b"}, asked)
	require.Equal(t, `       7  fact   stream_paused          {"reason":"\u001b[2J\u009b"}`+"\n"+
		`       9  chunk  custom                 {"eventName":"x"}`+"\n", out)

	out, err = told(t, answering(&asked, map[string]string{"/sessions/s/records": two}), append(args, "--json")...)
	require.Error(t, err)
	require.Equal(t, strings.ReplaceAll(two, "\n\n\n", "\n"), out)
}

// If a connection can be lost without a sign, as behind a proxy of HTTP/1.0, half of the records
// must not be taken for all.
func TestRecordsThatMayBeCut(t *testing.T) {
	const one = `{"sequence":7,"kind":"fact","type":"stream_paused","agent":"s","data":{"type":"stream_paused","reason":"x"}}` + "\n"
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.0 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n" + one))
			conn.Close()
		}
	}
	for _, args := range [][]string{{"export", "s"}, {"records", "s"}, {"records", "s", "--json"}} {
		_, err := told(t, cut, args...)
		require.ErrorContains(t, err, "neither a length nor an end is given", args)
	}
	out, err := told(t, cut, "records", "s", "--follow", "--json")
	require.ErrorContains(t, err, "the connection was lost; resume with --from 7")
	require.Equal(t, one, out)
}

// A point of no session, such as that of an unset variable, is no request for another route.
func TestAPointNeedsASession(t *testing.T) {
	for _, args := range [][]string{{"state", "@5"}, {"state", "@"}, {"records", "@5"}, {"diff", "@1..2"}, {"replay", "@5"}, {"tail", "@5"}, {"compare", "s", "@2"}, {"export", "@"}} {
		_, err := told(t, func(_ http.ResponseWriter, r *http.Request) { t.Error("a request for", r.URL) }, args...)
		require.ErrorContains(t, err, "the session's id must not be empty", args)
	}
}

// The user ends a follow, which is no failure.
func TestFollowingIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		stop()
		<-r.Context().Done()
	}))
	defer srv.Close()
	from := source.Flags{ServerFlags: source.ServerFlags{Server: srv.URL}}
	p := &flags.Process{Ctx: ctx, Stdout: new(bytes.Buffer), Stderr: os.Stderr}
	require.NoError(t, recordsCmd{Flags: from, Session: "s", Follow: true}.Run(p))
	require.ErrorIs(t, recordsCmd{Flags: from, Session: "s"}.Run(p), context.Canceled, "half of them is a failure")
}

// A replay that the user stops has printed its beginning, and nothing before.
func TestReplayIsStopped(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: {\"type\":\"chunk\",\"chunk\":{\"type\":\"custom\"},\"sequence\":1}\n\n"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	from := streamFlags{Flags: source.Flags{ServerFlags: source.ServerFlags{Server: srv.URL}}, StreamFlags: terminal.StreamFlags{Lines: true}}
	for _, replay := range []replayCmd{{streamFlags: from, Session: "s"}, {streamFlags: from, Session: "s", SSE: true}} {
		ctx, stop := context.WithCancel(t.Context())
		p := &flags.Process{Ctx: ctx, Stdout: writerFunc(func(b []byte) (int, error) {
			stop()
			return len(b), nil
		}), Stderr: os.Stderr}
		require.NoError(t, replay.Run(p))
		require.ErrorIs(t, replay.Run(p), context.Canceled, "nothing was shown")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
