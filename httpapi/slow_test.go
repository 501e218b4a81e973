package httpapi_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/integration/testkit"
)

// stuck opens /sse and never reads.
func stuck(t *testing.T, url, session string) {
	t.Helper()
	stuckAt(t, url, "/sse?sessionId="+session)
}

// stuckAt is stuck at another target.
func stuckAt(t *testing.T, url, target string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target)
	require.NoError(t, err)
}

// stuckOn opens a stream that is never read, of a server that waits for no
// client for long. dropped waits until the server has given it up.
func (a *testAPI) stuckOn(target string) (dropped func()) {
	a.t.Helper()
	httpapi.SetWriteTimeout(a.srv, 50*time.Millisecond)
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		a.srv.ServeHTTP(w, r)
	}))
	a.t.Cleanup(srv.Close)
	stuckAt(a.t, srv.URL, target)
	return func() {
		a.t.Helper()
		select {
		case <-done:
		case <-time.After(within):
			a.t.Fatal("the stuck client still has its stream")
		}
	}
}

func TestSlowClientHoldsUpNobody(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"))
	stuck(t, a.http.URL, "s")
	quick := a.stream("/sse?sessionId=s")
	big := strings.Repeat("x", 1<<20)
	for range 16 { // far beyond what sockets hold
		a.append("s", text("s", big))
		_, got := quick.chunk()
		require.Equal(t, big, got)
	}
	a.append("s", ended("s", `1`))
	_, texts, _ := quick.rest()
	require.Empty(t, texts)
	// The stuck client does not hold up the end of the test: Close ends its
	// stream at the next event, and the listener its connection.
}

func TestStuckClientIsDropped(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	a := newAPI(t)
	a.append("s", created("s"))
	dropped := a.stuckOn("/sse?sessionId=s")
	for range 16 {
		a.append("s", text("s", strings.Repeat("x", 1<<20)))
	}
	dropped()
	require.NotContains(t, a.logs.String(), "level=ERROR")
}
