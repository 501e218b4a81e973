package embed_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

// deaf subscribes to everything that is live, and reads nothing of it.
func deaf(t *testing.T, srv *embed.Server) {
	t.Helper()
	u, err := url.Parse(srv.ClientURL())
	require.NoError(t, err)
	c, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	in := bufio.NewReader(c)
	_, err = in.ReadString('\n') // INFO
	require.NoError(t, err)
	_, err = fmt.Fprint(c, "CONNECT {\"verbose\":false}\r\nSUB helix.live.> 1\r\nPING\r\n")
	require.NoError(t, err)
	for line := ""; line != "PONG\r\n"; {
		line, err = in.ReadString('\n')
		require.NoError(t, err)
	}
}

// Clients that do not read can't take the server's memory, each a part of it: those
// that leave the most are ended, and those that read lose nothing.
func TestUnreadBytesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	const most, large, messages = 32 << 20, 1 << 20, 40
	var logged testkit.Log
	srv := embedtest.Server(t, embed.WithMaxUnread(embed.Options{Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&logged, nil))}, most))
	reader, err := nats.Connect(srv.ClientURL(), nats.NoReconnect())
	require.NoError(t, err)
	defer reader.Close()
	got := make(chan struct{}, messages)
	_, err = reader.Subscribe("helix.live.>", func(*nats.Msg) { got <- struct{}{} })
	require.NoError(t, err)
	require.NoError(t, reader.Flush())
	for range 8 {
		deaf(t, srv)
	}
	nc, _ := connect(t, srv)
	payload := bytes.Repeat([]byte("x"), large)
	for range messages {
		require.NoError(t, nc.Publish("helix.live.s", payload))
		require.NoError(t, nc.Flush())
		select {
		case <-got:
		case <-time.After(time.Minute):
			t.Fatal("a client that reads gets nothing")
		}
	}
	require.Eventually(t, func() bool { return srv.Unread() <= most }, time.Minute, 10*time.Millisecond)
	require.Contains(t, logged.String(), "it reads too slowly")
	require.NoError(t, reader.Flush(), "the client that reads stays")
	require.NoError(t, nc.Flush())
}
