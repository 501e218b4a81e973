package daemon

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manager is a service manager's socket.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	env  map[string]string
}

func newManager(t *testing.T, name string) *manager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &manager{t: t, conn: conn, env: map[string]string{"NOTIFY_SOCKET": strings.Replace(name, "\x00", "@", 1)}}
}

// notifier is one that calls m.
func (m *manager) notifier() *notifier {
	m.t.Helper()
	n, err := newNotifier(func(name string) string { return m.env[name] }, slog.New(slog.DiscardHandler))
	require.NoError(m.t, err)
	m.t.Cleanup(n.close)
	return n
}

// next returns the next message, but those that call the watchdog.
func (m *manager) next() string {
	m.t.Helper()
	for {
		if text := m.read(time.Minute); text != "WATCHDOG=1" {
			return text
		}
	}
}

// read returns the next message, or nothing if there is none in time.
func (m *manager) read(within time.Duration) string {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(within)))
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if os.IsTimeout(err) {
		return ""
	}
	require.NoError(m.t, err)
	return string(buf[:n])
}

func TestNotify(t *testing.T) {
	for name, socket := range map[string]string{
		"a file": filepath.Join(t.TempDir(), "s"), "an abstract socket": "\x00helixd-" + strconv.FormatInt(time.Now().UnixNano(), 36),
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, socket)
			n := m.notifier()
			n.starting(2 * time.Second)
			require.Equal(t, "STATUS=Starting\nEXTEND_TIMEOUT_USEC=2000000", m.next())
			n.ready("http://x")
			require.Equal(t, "READY=1\nSTATUS=Serving http://x", m.next())
			n.stopping(time.Second)
			require.Equal(t, "STOPPING=1\nSTATUS=Stopping\nEXTEND_TIMEOUT_USEC=1000000", m.next(), "no watchdog is begun")
		})
	}
}

// TestNotifyWaits: while the daemon waits for other nodes, its start is extended.
func TestNotifyWaits(t *testing.T) {
	m := newManager(t, filepath.Join(t.TempDir(), "s"))
	n := m.notifier()
	n.every = time.Millisecond
	done := n.waiting(2 * time.Second)
	for range 3 {
		require.Equal(t, "STATUS=Starting\nEXTEND_TIMEOUT_USEC=2000000", m.next())
	}
	done()
	n.ready("http://x")
	require.Eventually(t, func() bool { return m.next() == "READY=1\nSTATUS=Serving http://x" }, time.Minute, time.Microsecond)
	require.Empty(t, m.read(100*time.Millisecond), "it has ended")
	done()

	var none *notifier
	none.waiting(time.Second)()
}

func TestNotifyNobody(t *testing.T) {
	m := &manager{t: t}
	n := m.notifier()
	n.ready("http://x")
	n.stopping(time.Second)

	m.env = map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "none")}
	_, err := newNotifier(func(name string) string { return m.env[name] }, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "NOTIFY_SOCKET")
}

// TestNotifyWatchdog: it is called while the server answers, and only then.
func TestNotifyWatchdog(t *testing.T) {
	var stuck atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/healthz", r.URL.Path)
		if stuck.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.Close)
	m := newManager(t, filepath.Join(t.TempDir(), "s"))
	m.env["WATCHDOG_USEC"], m.env["WATCHDOG_PID"] = "400000", strconv.Itoa(os.Getpid())
	n := m.notifier()
	n.ready(s.URL)
	m.next()
	for range 3 {
		require.Equal(t, "WATCHDOG=1", m.read(time.Minute))
	}
	stuck.Store(true)
	require.Eventually(t, func() bool { return m.read(time.Second) == "" }, time.Minute, time.Millisecond)
	stuck.Store(false)
	require.Equal(t, "WATCHDOG=1", m.read(time.Minute))

	n.stopping(2 * time.Second)
	require.Equal(t, "STOPPING=1\nSTATUS=Stopping\nEXTEND_TIMEOUT_USEC=2000000\nWATCHDOG_USEC=2000000", m.next())
	require.Empty(t, m.read(time.Second), "its server is going away")

	m.env["WATCHDOG_PID"] = "1"
	require.Zero(t, m.notifier().watchdog, "another process's")
}

func TestNotifyAliveIsInTime(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(s.Close)
	require.ErrorIs(t, alive(t.Context(), s.URL, time.Millisecond), context.DeadlineExceeded)
}
