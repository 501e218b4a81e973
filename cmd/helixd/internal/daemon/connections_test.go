package daemon

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connectionWait bounds what a test waits for; nothing takes as long.
const connectionWait = 20 * time.Second

// boundedFront serves with at most so many connections.
func boundedFront(t *testing.T, most int, h http.Handler) (address string) {
	t.Helper()
	f := newStarter(most, nil, slog.New(slog.DiscardHandler))
	f.open(h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.serve(listener)
	t.Cleanup(func() {
		f.shutdown(func() {})
		require.NoError(t, f.wait())
	})
	return listener.Addr().String()
}

func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, connectionWait)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(connectionWait)))
	return c
}

// get sends a request and returns the answer's body.
func get(t *testing.T, c net.Conn) string {
	t.Helper()
	_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// closed requires that the server closes a connection without a word.
func closed(t *testing.T, c net.Conn) {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err)
	if timeout, ok := err.(net.Error); ok {
		require.False(t, timeout.Timeout(), "it is still open")
	}
}

// Connections that say nothing keep nobody out: the longest idle one makes room.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	address := boundedFront(t, 3, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	first, second := dialed(t, address), dialed(t, address)
	used := dialed(t, address)
	require.Equal(t, "ok", get(t, used))
	for range 2 {
		require.Equal(t, "ok", get(t, dialed(t, address)))
	}
	closed(t, first)
	closed(t, second)
	require.Equal(t, "ok", get(t, used), "it was idle for less time than those")
}

// A connection with a request is not closed for another one.
func TestConnectionsWithRequestsStay(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	address := boundedFront(t, 1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-leave
		io.WriteString(w, "ok")
	}))
	busy := dialed(t, address)
	answer := make(chan string)
	go func() {
		_, _ = io.WriteString(busy, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(busy), nil)
		if err != nil {
			answer <- err.Error()
			return
		}
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-entered
	closed(t, dialed(t, address))
	close(leave)
	require.Equal(t, "ok", <-answer)
	fresh := dialed(t, address) // it is idle now, and makes room
	go func() { <-entered }()
	require.Equal(t, "ok", get(t, fresh))
}

// A connection that its client closes is not counted any more.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	all := newConnections(2, slog.New(slog.DiscardHandler))
	for range 5 {
		a, b := net.Pipe()
		defer b.Close()
		c := all.add(a)
		end := c.begin()
		require.NoError(t, c.Close())
		end() // the handler returns after its client has left
		require.NoError(t, c.Close(), "a second time")
	}
	require.Zero(t, all.open)
	require.Zero(t, all.waiting.Len())
}
