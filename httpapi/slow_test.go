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
)

// stuck opens /sse and never reads.
func stuck(t *testing.T, url, session string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /sse?sessionId=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", session)
	require.NoError(t, err)
}

func TestSlowClientHoldsUpNobody(t *testing.T) {
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
	a := newAPI(t)
	httpapi.SetWriteTimeout(a.srv, 50*time.Millisecond)
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		a.srv.ServeHTTP(w, r)
	}))
	defer srv.Close()
	a.append("s", created("s"))
	stuck(t, srv.URL, "s")
	for range 16 {
		a.append("s", text("s", strings.Repeat("x", 1<<20)))
	}
	select {
	case <-done:
	case <-time.After(within):
		t.Fatal("the stuck client still has its stream")
	}
	require.NotContains(t, a.logs.String(), "level=ERROR")
}
