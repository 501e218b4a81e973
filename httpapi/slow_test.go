package httpapi_test

import (
	"fmt"
	"io"
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
func stuck(t *testing.T, url, session string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = fmt.Fprintf(conn, "GET /sse?sessionId=%s HTTP/1.1\r\nHost: x\r\n\r\n", session)
	require.NoError(t, err)
	return conn
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
	conn := stuck(t, srv.URL, "s")
	for range 16 {
		a.append("s", text("s", strings.Repeat("x", 1<<20)))
	}
	select {
	case <-done:
	case <-time.After(within):
		t.Fatal("the stuck client still has its stream")
	}
	got, _ := io.ReadAll(conn)
	require.NotContains(t, string(got), "event: end")
	require.NotContains(t, a.logs.String(), "level=ERROR")
}

// TestDeadlineIsNotInherited: a deadline of one answer must not end the next
// on the same connection.
func TestDeadlineIsNotInherited(t *testing.T) {
	a := newAPI(t)
	httpapi.SetWriteTimeout(a.srv, 30*time.Millisecond)
	a.append("s", created("s"), text("s", "a"), ended("s", `1`))
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.http.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /sse?sessionId=s HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	readTo(t, conn, "0\r\n\r\n")
	<-time.After(60 * time.Millisecond) // the deadline must pass; nothing else is waited for
	for _, target := range []string{"/healthz", "/nowhere", "/sessions/s/records"} {
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		require.NoError(t, err)
		readTo(t, conn, "\n") // an answer
		<-time.After(60 * time.Millisecond)
		if target == "/healthz" {
			continue
		}
	}
}

func readTo(t *testing.T, conn net.Conn, end string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(within)))
	var got strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(got.String(), end) {
		n, err := conn.Read(buf)
		require.NoError(t, err, got.String())
		got.Write(buf[:n])
	}
}
