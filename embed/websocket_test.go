package embed_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

func overWebSocket(t *testing.T, srv *embed.Server) outsider {
	t.Helper()
	o := outsider{errs: make(chan error, 16)}
	nc, err := nats.Connect(srv.WebSocketURL(), nats.Timeout(patience), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.errs <- err }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	o.Conn = nc
	return o
}

func TestWebSocketClientsMayDoWhatOthersDo(t *testing.T) {
	t.Parallel()
	srv := embedtest.Server(t, embed.Options{WebSocket: &embed.WebSocket{Listen: "127.0.0.1:0"}})
	require.Empty(t, srv.ClientURL())
	require.True(t, strings.HasPrefix(srv.WebSocketURL(), "ws://127.0.0.1:"), srv.WebSocketURL())
	in, _ := connect(t, srv)
	log, err := jetstream.Open(t.Context(), in, nil)
	require.NoError(t, err)
	defer log.Close()

	out := overWebSocket(t, srv)
	sub, err := out.SubscribeSync("helix.live.s")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	e := logtest.Text("s", "heard")
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{e})
	require.NoError(t, err)
	m, err := sub.NextMsg(time.Minute)
	require.NoError(t, err)
	require.Equal(t, e.Payload, m.Data)

	require.NoError(t, out.Publish("helix.log.0.s", []byte("{}")))
	out.requireRefused(t, "publish")
	_, err = out.SubscribeSync("helix.log.>")
	require.NoError(t, err)
	out.requireRefused(t, "subscribe")
}

func TestWebSocketWithAUser(t *testing.T) {
	t.Parallel()
	srv := embedtest.Server(t, embed.Options{WebSocket: &embed.WebSocket{Listen: "127.0.0.1:0"}, User: "ops", Password: "secret"})
	requireNotLetIn(t, srv.WebSocketURL(), "nobody")
	nc, err := nats.Connect(srv.WebSocketURL(), nats.UserInfo("ops", "secret"), nats.Timeout(patience))
	require.NoError(t, err)
	nc.Close()
}

func TestWebSocketOverTLS(t *testing.T) {
	t.Parallel()
	files := certificates(t)
	srv := embedtest.Server(t, embed.Options{WebSocket: &embed.WebSocket{Listen: "127.0.0.1:0", Cert: files.Cert, Key: files.Key}})
	require.True(t, strings.HasPrefix(srv.WebSocketURL(), "wss://"), srv.WebSocketURL())
	nc, err := nats.Connect(srv.WebSocketURL(), nats.RootCAs(files.CA), nats.Timeout(patience))
	require.NoError(t, err)
	nc.Close()
	_, err = nats.Connect(strings.Replace(srv.WebSocketURL(), "wss:", "ws:", 1))
	require.Error(t, err)
}

// Any page that somebody on this machine looks at can try.
func TestWebPagesMayNotConnectUnlessAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		origins []string
		may     map[string]bool
	}{
		"none": {nil, map[string]bool{"": true, "https://app.example": false, "http://app.example": false, "null": false}},
		"one":  {[]string{"https://app.example"}, map[string]bool{"": true, "https://app.example": true, "https://evil.example": false, "http://app.example": false}},
		"all":  {[]string{"*"}, map[string]bool{"https://evil.example": true}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := embedtest.Server(t, embed.Options{WebSocket: &embed.WebSocket{Listen: "127.0.0.1:0", Origins: tc.origins}})
			for origin, may := range tc.may {
				require.Equal(t, may, upgrades(t, srv.WebSocketURL(), origin), "%q", origin)
			}
		})
	}
}

// upgrades asks for a WebSocket as a page of an origin does.
func upgrades(t *testing.T, url, origin string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(url, "ws:", "http:", 1), nil)
	require.NoError(t, err)
	if _, host, ok := strings.Cut(origin, "://"); ok {
		r.Host = host // the page's name resolves to this server
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": origin,
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode == http.StatusSwitchingProtocols
}

func TestWebSocketErrors(t *testing.T) {
	for want, w := range map[string]embed.WebSocket{
		"WebSocket address: missing port": {},
		"Cert and Key go together":        {Listen: "127.0.0.1:0", Cert: "x"},
		"WebSocket: TLS: ":                {Listen: "127.0.0.1:0", Cert: "x", Key: "y"},
	} {
		_, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), WebSocket: &w})
		require.ErrorContains(t, err, want)
	}
}
