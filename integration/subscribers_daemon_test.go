package integration_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// subscribed is the daemon's answer to who asks to hear a session.
func (d *daemon) subscribed(session string, body any) (subject string, urls []string, creds string) {
	d.t.Helper()
	status, answer := d.post("/sessions/"+session+"/subscriptions", body)
	require.Equal(d.t, http.StatusCreated, status, "%v", answer)
	at := answer["urls"].(map[string]any)
	for _, kind := range []string{"nats", "websocket"} {
		for _, u := range at[kind].([]any) {
			urls = append(urls, u.(string))
		}
	}
	expires, err := time.Parse(time.RFC3339, answer["expiresAt"].(string))
	require.NoError(d.t, err)
	require.True(d.t, expires.After(time.Now()))
	return answer["subject"].(string), urls, answer["creds"].(string)
}

// hears says whether a client with the credentials hears what is appended.
func (d *daemon) hears(session, url, creds, subject string) {
	d.t.Helper()
	nc, err := nats.Connect(url, nats.UserCredentialBytes([]byte(creds)), nats.NoReconnect(), nats.Timeout(time.Minute))
	require.NoError(d.t, err)
	defer nc.Close()
	sub, err := nc.SubscribeSync(subject)
	require.NoError(d.t, err)
	require.NoError(d.t, nc.Flush())
	d.produce(session)
	m, err := sub.NextMsg(time.Minute)
	require.NoError(d.t, err)
	require.Contains(d.t, string(m.Data), `"delta":"live"`)
}

// produce appends to a session as an outside producer.
func (d *daemon) produce(session string) {
	d.t.Helper()
	status, answer := d.post("/sessions/"+session+"/chunks", []any{map[string]any{
		"type": "text_delta", "delta": "live", "agentId": session, "agentType": "writer", "timestamp": 1, "step": 1,
	}})
	require.Equal(d.t, http.StatusOK, status, "%v", answer)
}

// From the daemon to a NATS client, with nothing configured but addresses; the
// rights outlive the daemon.
func TestDaemonLetsSubscribe(t *testing.T) {
	w := newWorld(t)
	t.Setenv("HELIX_NATS_USER", "ops")
	t.Setenv("HELIX_NATS_PASSWORD", "secret")
	t.Setenv("HELIX_NATS_WEBSOCKET_LISTEN", freeAddress(t))
	t.Setenv("HELIX_NATS_SUBSCRIBERS_TTL", "2h")
	d := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--data-dir", filepath.Join(t.TempDir(), "data"), "--nats-listen", freeAddress(t))
	d.start()
	d.produce("s")
	subject, urls, creds := d.subscribed("s", map[string]any{"ttl": "10m"})
	require.Equal(t, "helix.live.s", subject)
	require.Len(t, urls, 2)
	require.True(t, strings.HasPrefix(urls[0], "nats://127.0.0.1:") && strings.HasPrefix(urls[1], "ws://127.0.0.1:"), "%v", urls)
	for _, u := range urls {
		d.hears("s", u, creds, subject)
	}
	d.kill()
	d.start()
	for _, u := range urls {
		d.hears("s", u, creds, subject)
		requireRefused(t, func() error { _, err := nats.Connect(u); return err })
	}
	status, _ := d.post("/sessions/nobody/subscriptions", map[string]any{})
	require.Equal(t, http.StatusNotFound, status)
	d.stop()
	require.NotContains(t, d.logs.String(), "SU", "no seed is logged")
}

// requireKicked waits until a connection has ended and the credentials open no
// other.
func requireKicked(t *testing.T, nc *nats.Conn, url, creds string) {
	t.Helper()
	require.Eventually(t, nc.IsClosed, time.Minute, 10*time.Millisecond)
	requireRefused(t, func() error {
		nc, err := nats.Connect(url, nats.UserCredentialBytes([]byte(creds)), nats.Timeout(time.Minute))
		if err == nil {
			nc.Close()
		}
		return err
	})
}

func (d *daemon) delete(path string) (int, map[string]any) {
	d.t.Helper()
	resp, err := ask(d.t.Context(), http.MethodDelete, d.url+path, "")
	require.NoError(d.t, err)
	return d.answer(resp)
}

func (d *daemon) listener(url, creds string) *nats.Conn {
	d.t.Helper()
	nc, err := nats.Connect(url, nats.UserCredentialBytes([]byte(creds)), nats.NoReconnect(), nats.Timeout(time.Minute))
	require.NoError(d.t, err)
	d.t.Cleanup(nc.Close)
	return nc
}

// Rights are revoked by request and by the erasure of their session, also for a
// daemon that is killed and started again.
func TestDaemonRevokesSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--data-dir", filepath.Join(t.TempDir(), "data"), "--nats-listen", freeAddress(t))
	d.start()
	d.produce("s")
	d.produce("other")
	_, urls, old := d.subscribed("s", map[string]any{})
	_, _, others := d.subscribed("other", map[string]any{})
	connected, unconcerned := d.listener(urls[0], old), d.listener(urls[0], others)
	status, answer := d.delete("/sessions/s/subscriptions")
	require.Equal(t, http.StatusOK, status, "%v", answer)
	requireKicked(t, connected, urls[0], old)
	require.True(t, unconcerned.IsConnected())
	subject, _, next := d.subscribed("s", map[string]any{})
	d.hears("s", urls[0], next, subject)
	d.kill()
	d.start()
	requireKicked(t, unconcerned, urls[0], old)
	d.hears("s", urls[0], next, subject)

	connected = d.listener(urls[0], next)
	status, answer = d.delete("/sessions/s")
	require.Less(t, status, 300, "%v", answer)
	requireKicked(t, connected, urls[0], next)
	status, _ = d.delete("/sessions/s/subscriptions")
	require.Equal(t, http.StatusNotFound, status)
	require.Eventually(t, func() bool { // the id can be used again when the erasure is done
		status, _ := d.delete("/sessions/s")
		return status == http.StatusOK || status == http.StatusNotFound
	}, time.Minute, 50*time.Millisecond)
	d.produce("s")
	requireKicked(t, connected, urls[0], next)
	_, _, again := d.subscribed("s", map[string]any{})
	d.hears("s", urls[0], again, subject)
	d.stop()
}

// Where nobody could connect, or helixd has no key, there are no rights.
func TestDaemonWithoutSubscribers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, args := range map[string][]string{
		"embedded": {"--data-dir", filepath.Join(t.TempDir(), "data")}, "outside": {"--nats-url", newServer(t, "outside", nil).ClientURL()},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t, append([]string{"serve", "--config", w.config, "--allow-unauthenticated"}, args...)...)
			d.start()
			d.produce("s")
			status, answer := d.post("/sessions/s/subscriptions", map[string]any{})
			require.Equal(t, http.StatusNotImplemented, status)
			require.Equal(t, "NOT_IMPLEMENTED", answer["code"])
			d.stop()
		})
	}
}

// On an outside deployment the rights are signed by the account's key.
func TestDaemonLetsSubscribeOutside(t *testing.T) {
	testkit.Slow(t)
	a, creds := operatorAudience(t)
	w := newWorld(t)
	t.Setenv("HELIX_NATS_CREDENTIALS", creds)
	t.Setenv("HELIX_NATS_TLS_CA", filepath.Join(filepath.Dir(creds), "cert.pem"))
	t.Setenv("HELIX_NATS_SUBSCRIBERS_SIGNING_KEY", a.seed)
	t.Setenv("HELIX_NATS_SUBSCRIBERS_ACCOUNT", a.account)
	t.Setenv("HELIX_NATS_SUBSCRIBERS_URLS", a.urls["TCP"]+","+a.urls["WebSocket"])
	d := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--nats-url", a.urls["TCP"])
	d.start()
	d.produce("s")
	subject, urls, right := d.subscribed("s", map[string]any{})
	require.ElementsMatch(t, []string{a.urls["TCP"], a.urls["WebSocket"]}, urls)
	for _, u := range urls {
		l := a.connect(t, u, nats.UserCredentialBytes([]byte(right)))
		heard := l.listen(t, subject)
		d.produce("s")
		requireHeard(t, heard, subject, "live")
	}
	status, answer := d.delete("/sessions/s/subscriptions")
	require.Equal(t, http.StatusNotImplemented, status)
	require.Equal(t, "NOT_IMPLEMENTED", answer["code"])
	require.Contains(t, answer["error"], "nsc revocations")
	d.stop()
	require.NotContains(t, d.logs.String(), a.seed)
}
