package embed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// outsider is a connection through the port; refusals come in on errs.
type outsider struct {
	*nats.Conn
	errs chan error
}

func outside(t *testing.T, srv *embed.Server, opts ...nats.Option) outsider {
	t.Helper()
	o := outsider{errs: make(chan error, 16)}
	nc, err := nats.Connect(srv.ClientURL(), append(opts, nats.IgnoreDiscoveredServers(), nats.Timeout(patience), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		o.errs <- err
	}))...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	o.Conn = nc
	return o
}

func (o outsider) requireRefused(t *testing.T, what string) {
	t.Helper()
	require.NoError(t, o.Flush())
	select {
	case err := <-o.errs:
		require.ErrorIs(t, err, nats.ErrPermissionViolation, what)
	case <-time.After(patience):
		require.Fail(t, "not refused", what)
	}
}

// requireNotLetIn wants every try to connect to fail, and one to say why: a
// client writes on after what is refused, so that the refusal may be lost with
// its connection. Others of a cluster, which the server tells of, are not tried.
func requireNotLetIn(t *testing.T, url, what string, opts ...nats.Option) {
	t.Helper()
	opts = append(opts, nats.IgnoreDiscoveredServers())
	for begin := time.Now(); ; {
		_, err := nats.Connect(url, opts...)
		require.Error(t, err, what)
		if errors.Is(err, nats.ErrAuthorization) {
			return
		}
		require.Less(t, time.Since(begin), patience, "%s: %v", what, err)
	}
}

// served is a server with one session in its log.
func served(t *testing.T, o embed.Options) (*embed.Server, *nats.Conn, eventlog.Log) {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	srv := embedtest.Server(t, o)
	nc, _ := connect(t, srv)
	log, err := jetstream.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "first")})
	require.NoError(t, err)
	return srv, nc, log
}

func readAll(ctx context.Context, log eventlog.Log, session string) (n int, err error) {
	for _, e := range log.Read(ctx, session, 0, 0) {
		if e != nil {
			return n, e
		}
		n++
	}
	return n, nil
}

func TestOutsideHearsLive(t *testing.T) {
	srv, _, log := served(t, embed.Options{})
	out := outside(t, srv)
	sub, err := out.SubscribeSync("helix.live.>")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	e := logtest.Text("s", "second")
	last, err := log.Append(t.Context(), "s", 1, []eventlog.Entry{e})
	require.NoError(t, err)
	m, err := sub.NextMsg(time.Minute)
	require.NoError(t, err)
	require.Equal(t, e.Payload, m.Data)
	require.Equal(t, "helix.live.s", m.Subject)
	require.EqualValues(t, 2, last)
	require.Equal(t, "2", m.Header.Get("Nats-Sequence"))
}

func TestOutsideMayDoNothingElse(t *testing.T) {
	t.Parallel()
	_, keys := minter(t)
	for name, o := range map[string]embed.Options{
		"live only": {}, "AllowRead": {AllowRead: true},
		"with subscribers": {Subscribers: keys}, "AllowRead with subscribers": {AllowRead: true, Subscribers: keys},
	} {
		t.Run(name, func(t *testing.T) {
			srv, in, log := served(t, o)
			heard, err := in.SubscribeSync("helix.>")
			require.NoError(t, err)
			out := outside(t, srv)
			for _, subject := range []string{
				"helix.log.0.s", "helix.live.s", "helix.x", "x", "_INBOX.x",
				"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.UPDATE.HELIX_LOG_0", "$JS.API.STREAM.DELETE.HELIX_LOG_0",
				"$JS.API.STREAM.PURGE.HELIX_LOG_0", "$JS.API.STREAM.MSG.DELETE.HELIX_LOG_0",
				"$JS.API.CONSUMER.CREATE.HELIX_LOG_0", "$JS.API.CONSUMER.DURABLE.CREATE.HELIX_LOG_0.d",
				"$JS.API.CONSUMER.CREATE.HELIX_LOG_0.c.helix.log.0.s", "$SYS.REQ.SERVER.PING",
			} {
				require.NoError(t, out.PublishRequest(subject, out.NewInbox(), []byte("{}")))
				out.requireRefused(t, subject)
			}
			for _, subject := range []string{">", "*.>", "helix.>", "helix.log.>", "$SYS.>", "$JS.>", "x"} {
				_, err := out.SubscribeSync(subject)
				require.NoError(t, err)
				out.requireRefused(t, subject)
			}
			n, err := readAll(t.Context(), log, "s")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, in.Flush())
			pending, _, err := heard.Pending()
			require.NoError(t, err)
			require.Zero(t, pending)
		})
	}
}

func TestLiveOnlyReadsNoLog(t *testing.T) {
	t.Parallel()
	srv, _, _ := served(t, embed.Options{})
	out := outside(t, srv)
	for _, subject := range []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.HELIX_LOG_0", "$JS.API.DIRECT.GET.HELIX_LOG_0"} {
		require.NoError(t, out.PublishRequest(subject, out.NewInbox(), nil))
		out.requireRefused(t, subject)
	}
}

func TestAllowReadOpensTheLog(t *testing.T) {
	t.Parallel()
	srv, _, log := served(t, embed.Options{AllowRead: true})
	last := uint64(1)
	var err error
	for range 3 { // more than a page of a batched direct get
		entries := make([]eventlog.Entry, 300)
		for i := range entries {
			entries[i] = logtest.Text("s", "more")
		}
		last, err = log.Append(t.Context(), "s", last, entries)
		require.NoError(t, err)
	}
	out := outside(t, srv)
	read, err := jetstream.Open(t.Context(), out.Conn, nil)
	require.NoError(t, err)
	defer read.Close()
	n, err := readAll(t.Context(), read, "s")
	require.NoError(t, err)
	require.Equal(t, 901, n)
	for id, err := range read.Sessions(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, "s", id)
	}
	js, err := natsjs.New(out.Conn, natsjs.WithDefaultTimeout(patience))
	require.NoError(t, err)
	_, err = js.AccountInfo(t.Context())
	require.NoError(t, err)
	for name := range js.StreamNames(t.Context()).Name() {
		require.Contains(t, []string{"HELIX_LOG_0", "HELIX_SEG_0", "HELIX_BLOBS"}, name)
	}

	for r, err := range read.Follow(t.Context(), "s", last-1) {
		require.NoError(t, err)
		require.Equal(t, last, r.Sequence)
		break
	}
}

// The server itself publishes an answer to the request's reply subject.
func TestAllowReadWritesNothingByReply(t *testing.T) {
	srv, in, log := served(t, embed.Options{AllowRead: true})
	heard, err := in.SubscribeSync("helix.>")
	require.NoError(t, err)
	require.NoError(t, in.Flush())
	out := outside(t, srv)
	for _, reply := range []string{"helix.log.0.s", "helix.log.0.new", "helix.live.s"} {
		require.NoError(t, out.PublishRequest("$JS.API.DIRECT.GET.HELIX_LOG_0", reply, []byte(`{"seq":1}`)))
		require.NoError(t, out.PublishRequest("$JS.API.STREAM.MSG.GET.HELIX_LOG_0", reply, []byte(`{"seq":1}`)))
		require.NoError(t, out.PublishRequest("$JS.API.STREAM.INFO.HELIX_LOG_0", reply, nil))
		require.NoError(t, out.PublishRequest("$JS.API.INFO", reply, nil))
		require.NoError(t, out.PublishRequest("$JS.API.STREAM.NAMES", reply, nil))
	}
	// A request after them on the same connection: they are done when it is.
	_, err = out.Request("$JS.API.STREAM.INFO.HELIX_LOG_0", nil, time.Minute)
	require.NoError(t, err)
	last, err := log.Append(t.Context(), "s", 1, []eventlog.Entry{logtest.Text("s", "second")})
	require.NoError(t, err)
	require.EqualValues(t, 2, last, "nothing came in between")
	m, err := heard.NextMsg(time.Minute)
	require.NoError(t, err)
	require.Equal(t, "helix.log.0.s", m.Subject)
	require.Contains(t, string(m.Data), "second")
}

func TestOutsideHearsNoInboxOfOthers(t *testing.T) {
	srv, _, log := served(t, embed.Options{})
	out := outside(t, srv)
	sub, err := out.SubscribeSync("_INBOX.>")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	_, err = readAll(t.Context(), log, "s")
	require.NoError(t, err)
	require.NoError(t, out.Flush())
	pending, _, err := sub.Pending()
	require.NoError(t, err)
	require.Zero(t, pending)
}

func TestUserMayDoEverything(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) { userMayDoEverything(t, nil) })
	t.Run("with subscribers", func(t *testing.T) {
		_, keys := minter(t)
		userMayDoEverything(t, keys)
	})
}

func userMayDoEverything(t *testing.T, subscribers []string) {
	srv, _, _ := served(t, embed.Options{User: "ops", Password: "p\"{$x} #", Subscribers: subscribers})
	out := outside(t, srv, nats.UserInfo("ops", "p\"{$x} #"))
	log, err := jetstream.Open(t.Context(), out.Conn, nil)
	require.NoError(t, err)
	defer log.Close()
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{logtest.Text("s", "second")})
	require.NoError(t, err)
	js, err := natsjs.New(out.Conn, natsjs.WithDefaultTimeout(patience))
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "OWN", Subjects: []string{"own"}})
	require.NoError(t, err)
}

func TestWithAUserNobodyElseMayConnect(t *testing.T) {
	t.Parallel()
	_, keys := minter(t)
	for name, o := range map[string]embed.Options{
		"live only": {}, "AllowRead": {AllowRead: true},
		"with subscribers": {Subscribers: keys}, "AllowRead with subscribers": {AllowRead: true, Subscribers: keys},
	} {
		t.Run(name, func(t *testing.T) {
			o.User, o.Password = "ops", "secret"
			srv, _, _ := served(t, o)
			requireNotLetIn(t, srv.ClientURL(), name)
		})
	}
}

func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	_, keys := minter(t)
	for name, subscribers := range map[string][]string{"alone": nil, "with subscribers": keys} {
		t.Run(name, func(t *testing.T) {
			srv, _, _ := served(t, embed.Options{User: "ops", Password: "secret", Subscribers: subscribers})
			for _, c := range [][2]string{
				{"ops", "wrong"}, {"ops", ""}, {"", "secret"}, {"nobody", "secret"},
				{"helixd inside", ""}, {"helixd inside", "x"}, {"helixd outside", ""},
			} {
				requireNotLetIn(t, srv.ClientURL(), fmt.Sprintf("%q", c), nats.UserInfo(c[0], c[1]))
			}
			requireNotLetIn(t, srv.ClientURL(), "a token", nats.Token("secret"))
		})
	}
}
