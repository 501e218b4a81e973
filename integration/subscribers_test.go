package integration_test

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// audience is a deployment with a log, and clients that may hear one session.
type audience struct {
	urls   map[string]string // by transport
	tls    *tls.Config       // of clients; nil: none
	admin  *nats.Conn        // may do everything in the log's account
	log    *jetstream.Log
	minter *subscriber.Minter // nil: there are no rights, but users
	seed   string             // of minter's key
	// account is for which minter signs, empty: its own.
	account string
	users   map[string]nats.Option
}

// own is the session that the attacker may hear, victim the one that he may not.
const own, victim = "own", "victim"

// each runs a test by each transport.
func (a *audience) each(t *testing.T, visit func(t *testing.T, url string)) {
	for transport, url := range a.urls {
		t.Run(transport, func(t *testing.T) { visit(t, url) })
	}
}

// may is how a client shows that it may hear a session.
func (a *audience) may(t *testing.T, session string) nats.Option {
	t.Helper()
	if a.minter == nil {
		require.Contains(t, a.users, session)
		return a.users[session]
	}
	right, err := a.minter.Mint(session, 0, 0)
	require.NoError(t, err)
	require.Equal(t, layout.LiveSubject(session), right.Subject)
	return nats.UserJWTAndSeed(right.JWT, right.Seed)
}

// listener is a client's connection; what it is refused comes in on errs.
type listener struct {
	*nats.Conn
	errs chan error
}

func (a *audience) connect(t *testing.T, url string, opts ...nats.Option) listener {
	t.Helper()
	l, err := a.tryConnect(url, opts...)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func (a *audience) tryConnect(url string, opts ...nats.Option) (l listener, err error) {
	l.errs = make(chan error, 16)
	opts = append([]nats.Option{nats.NoReconnect(), nats.Timeout(time.Minute), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		l.errs <- err
	})}, opts...)
	if a.tls != nil {
		opts = append(opts, nats.Secure(a.tls))
	}
	l.Conn, err = nats.Connect(url, opts...)
	return l, err
}

func (l listener) listen(t *testing.T, subject string) *nats.Subscription {
	t.Helper()
	sub, err := l.SubscribeSync(subject)
	require.NoError(t, err)
	require.NoError(t, l.Flush())
	return sub
}

// say appends a record to a session.
func (a *audience) say(t *testing.T, session, text string) uint64 {
	t.Helper()
	entry := []eventlog.Entry{logtest.Text(session, text)}
	head, err := a.log.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	last, err := eventlog.AppendOnce(t.Context(), a.log, session, rand.Text(), head, entry)
	require.NoError(t, err)
	return last
}

func requireHeard(t *testing.T, sub *nats.Subscription, subject, text string) {
	t.Helper()
	m, err := sub.NextMsg(time.Minute)
	require.NoError(t, err)
	require.Equal(t, subject, m.Subject)
	require.Contains(t, string(m.Data), text)
}

// stored is how much the log's stream has ever taken.
func (a *audience) stored(t *testing.T) uint64 {
	t.Helper()
	s, err := streams(t, a.admin).Stream(t.Context(), "HELIX_LOG_0")
	require.NoError(t, err)
	return s.CachedInfo().State.LastSeq
}

// newAudience serves the log of a deployment that has been set up.
func newAudience(t *testing.T, a *audience, helixd *nats.Conn) *audience {
	t.Helper()
	a.log = jetstreamtest.Open(t, helixd, nil)
	a.say(t, own, "first")
	a.say(t, victim, "first")
	return a
}

// embeddedAudience is that of the server within helixd.
func embeddedAudience(t *testing.T, o embed.Options) *audience {
	t.Helper()
	a := &audience{}
	var err error
	a.seed, err = subscriber.NewKey()
	require.NoError(t, err)
	a.minter, err = subscriber.New(a.seed, nil)
	require.NoError(t, err)
	o.SyncInterval = time.Second
	o.Listen, o.WebSocket = "127.0.0.1:0", &embed.WebSocket{Listen: "127.0.0.1:0"}
	o.Subscribers = []string{a.minter.PublicKey()}
	srv, admin := embedtest.Start(t, o)
	a.admin = admin
	a.urls = map[string]string{"TCP": srv.ClientURL(), "WebSocket": srv.WebSocketURL()}
	return newAudience(t, a, a.admin)
}

func TestSubscribersOfTheEmbeddedServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	a := embeddedAudience(t, embed.Options{})
	a.each(t, func(t *testing.T, url string) {
		t.Run("hear", func(t *testing.T) { a.hear(t, url) })
		t.Run("odd ids", func(t *testing.T) { a.oddIDs(t, url) })
		t.Run("hear nothing else", func(t *testing.T) { a.hearNothingElse(t, url) })
		t.Run("say nothing", func(t *testing.T) { a.sayNothing(t, url) })
		t.Run("bad rights", func(t *testing.T) { a.badRights(t, url) })
		t.Run("expiry", func(t *testing.T) { a.expiry(t, url) })
	})
}

// Nor is it otherwise where others may read the logs.
func TestSubscribersBesideReaders(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	a := embeddedAudience(t, embed.Options{AllowRead: true})
	a.each(t, func(t *testing.T, url string) {
		t.Run("hear nothing else", func(t *testing.T) { a.hearNothingElse(t, url) })
		t.Run("say nothing", func(t *testing.T) { a.sayNothing(t, url) })
		t.Run("are told no lies", func(t *testing.T) { a.toldNoLies(t, url) })
	})
}

// toldNoLies: a client without credentials has the server answer a request of
// its own to the subject that a subscriber listens to.
func (a *audience) toldNoLies(t *testing.T, url string) {
	l := a.connect(t, url, a.may(t, own))
	heard := l.listen(t, layout.LiveSubject(own))
	reader := a.connect(t, url)
	told := reader.listen(t, layout.LiveSubject(own))
	require.NoError(t, reader.PublishRequest("$JS.API.STREAM.INFO.HELIX_LOG_0", layout.LiveSubject(own), nil))
	requireHeard(t, told, layout.LiveSubject(own), "stream_info") // it lies to its like
	a.say(t, own, "the truth")
	requireHeard(t, heard, layout.LiveSubject(own), "the truth")
}

// hear: the session, live, and two clients of one right each for themselves.
func (a *audience) hear(t *testing.T, url string) {
	right := a.may(t, own)
	var subs []*nats.Subscription
	for range 2 {
		subs = append(subs, a.connect(t, url, right).listen(t, layout.LiveSubject(own)))
	}
	for i := range 3 {
		said := fmt.Sprint("said ", i)
		sequence := a.say(t, own, said)
		for _, sub := range subs {
			m, err := sub.NextMsg(time.Minute)
			require.NoError(t, err)
			require.Equal(t, logtest.Text(own, said).Payload, m.Data)
			r, _, err := jetstream.LiveRecord(m)
			require.NoError(t, err)
			require.Equal(t, sequence, r.Sequence)
			require.Equal(t, "text_delta", r.Type)
		}
	}
}

// oddIDs: whatever an id looks like, its right is for its own session alone.
func (a *audience) oddIDs(t *testing.T, url string) {
	for _, id := range []string{"*", ">", "own.>", "own.*", "*.own", "a.b", "a b", " own", "%2A", "own%", "é", "$JS", "_INBOX", strings.Repeat("*", 256)} {
		l := a.connect(t, url, a.may(t, id))
		heard := l.listen(t, layout.LiveSubject(id))
		a.say(t, victim, "secret")
		a.say(t, own, "secret")
		a.say(t, id, "mine")
		requireHeard(t, heard, layout.LiveSubject(id), "mine")
		n, _, err := heard.Pending()
		require.NoError(t, err)
		require.Zero(t, n)
		raw := "helix.live." + id
		if _, err := l.SubscribeSync(raw); err == nil && raw != layout.LiveSubject(id) { // else the client did not try
			l.requireRefused(t, raw)
		}
		l.Close()
	}
	if a.minter != nil {
		for _, id := range []string{"", "a\x00b", "own\r\nSUB > 1", "a\tb"} {
			_, err := a.minter.Mint(id, 0, 0)
			require.ErrorAs(t, err, new(*eventlog.ValidationError))
		}
	}
}

// requireRefused sees that the server refused what was last asked of it.
func (l listener) requireRefused(t *testing.T, what string) {
	t.Helper()
	require.NoError(t, l.FlushTimeout(time.Minute), what)
	select {
	case err := <-l.errs:
		require.ErrorIs(t, err, nats.ErrPermissionViolation, what)
	case <-time.After(time.Minute):
		require.Fail(t, "not refused", what)
	}
}

// audible are subjects on which there is something to hear while others use
// the log; silent ones are as forbidden.
var (
	audible = []string{
		"helix.live.victim", "helix.live.>", "helix.live.*", "helix.*.victim", "helix.*.*", "helix.>", "*.live.victim", "*.live.*",
		"*.*.victim", "*.*.*", "*.*.>", "*.>", ">", "helix.log.>", "helix.log.0.victim", "helix.*.0.victim", "*.*.*.victim", "_INBOX.>",
	}
	silent = []string{
		"helix.live.own.>", "helix.live.own.*", "helix.live.%6Fwn", "HELIX.live.victim", "helix.log.0.own", "helix.seg.>", "helix.snap.>",
		"helix.runs.>", "helix.node.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$JSC.>", "$SYS.>", "$SYS.REQ.>", "$SYS.ACCOUNT.>",
		"$NRG.>", "$KV.>", "$O.>", "$SRV.>", "$MQTT.>", "_INBOX.*", "_INBOX.x", "_R_.>", "_GR_.>", "$GR.>", "$LDS.>",
	}
)

// hearNothingElse: a subscription to anything else is refused and hears
// nothing, though there is something to hear.
func (a *audience) hearNothingElse(t *testing.T, url string) {
	live := layout.LiveSubject(own)
	l := a.connect(t, url, a.may(t, own))
	heard := l.listen(t, live)
	for i, subject := range slices.Concat(audible, silent) {
		for _, group := range []string{"", "group", live} {
			if group != "" && i >= len(audible) {
				continue
			}
			others, err := a.admin.SubscribeSync(subject) // by who may do everything
			require.NoError(t, err)
			require.NoError(t, a.admin.Flush())
			sub, err := l.QueueSubscribeSync(subject, group)
			require.NoError(t, err)
			l.requireRefused(t, subject)

			a.say(t, victim, "secret")
			_, err = a.admin.Request("$JS.API.INFO", nil, time.Minute) // which is answered to an inbox
			require.NoError(t, err)
			if i < len(audible) {
				_, err := others.NextMsg(time.Minute)
				require.NoError(t, err, "nobody said anything on %s", subject)
			}
			a.say(t, own, "marker")
			requireHeard(t, heard, live, "marker") // what came before it would be here by now
			for _, s := range []*nats.Subscription{sub, heard} {
				n, _, err := s.Pending()
				require.NoError(t, err)
				require.Zero(t, n, subject)
			}
			require.NoError(t, others.Unsubscribe())
			require.NoError(t, sub.Unsubscribe())
		}
	}
}

// sayNothing: whatever a client publishes or requests is refused; the log stays
// as it is, and no answer reaches anybody.
func (a *audience) sayNothing(t *testing.T, url string) {
	live := layout.LiveSubject(own)
	record := logtest.Text(own, "forged")
	forged := nats.Header{"Helix-Kind": {"chunk"}, "Helix-Type": {"text_delta"}, "Helix-Agent": {own}, "Nats-Sequence": {"1"}}
	before := a.stored(t)
	heads := map[string]uint64{}
	for _, session := range []string{own, victim} {
		head, err := a.log.Head(t.Context(), session)
		require.NoError(t, err)
		heads[session] = head
	}
	all, err := a.admin.SubscribeSync("helix.>")
	require.NoError(t, err)
	require.NoError(t, a.admin.Flush())
	direct := fmt.Sprintf(`{"seq":%d}`, heads[victim])
	attacks := []struct{ subject, body string }{
		{live, string(record.Payload)}, {"helix.live.victim", string(record.Payload)},
		{"helix.log.0.own", string(record.Payload)}, {"helix.log.0.victim", string(record.Payload)}, {"helix.log.0.new", string(record.Payload)},
		{"helix.seg.0.own", "x"}, {"helix.snap.0.own.1", "x"}, {"helix.blob.0.own.x.0", "x"}, {"helix.erased.0.victim", "x"}, {"helix.floor.0.victim", "9"},
		{"helix.runs.x", "{}"}, {"helix.node.wake", "{}"}, {"_INBOX.x", "x"}, {"x", "x"}, {"$JS.ACK.HELIX_RUNS.x.1.1.1.1.1", "+ACK"}, {"$JS.FC.HELIX_LOG_0.x", ""},
		{"$JS.API.INFO", ""}, {"$JS.API.STREAM.NAMES", ""}, {"$JS.API.STREAM.LIST", ""}, {"$JS.API.STREAM.INFO.HELIX_LOG_0", ""},
		{"$JS.API.STREAM.MSG.GET.HELIX_LOG_0", direct}, {"$JS.API.DIRECT.GET.HELIX_LOG_0", direct}, {"$JS.API.DIRECT.GET.HELIX_LOG_0.helix.log.0.victim", ""},
		{"$JS.API.DIRECT.GET.HELIX_LOG_0", `{"batch":10,"next_by_subj":"helix.log.0.*"}`},
		{"$JS.API.STREAM.CREATE.X", `{"name":"X","subjects":["x"],"sources":[{"name":"HELIX_LOG_0"}]}`},
		{"$JS.API.STREAM.UPDATE.HELIX_LOG_0", "{}"}, {"$JS.API.STREAM.DELETE.HELIX_LOG_0", ""}, {"$JS.API.STREAM.PURGE.HELIX_LOG_0", ""},
		{"$JS.API.STREAM.MSG.DELETE.HELIX_LOG_0", direct}, {"$JS.API.STREAM.SNAPSHOT.HELIX_LOG_0", `{"deliver_subject":"` + live + `"}`},
		{"$JS.API.CONSUMER.CREATE.HELIX_LOG_0", `{"stream_name":"HELIX_LOG_0","config":{"deliver_subject":"` + live + `","ack_policy":"none"}}`},
		{"$JS.API.CONSUMER.CREATE.HELIX_LOG_0.c.helix.log.0.victim", "{}"}, {"$JS.API.CONSUMER.DURABLE.CREATE.HELIX_LOG_0.d", "{}"},
		{"$JS.API.CONSUMER.MSG.NEXT.HELIX_LOG_0.c", "1"}, {"$JS.HELIX.API.INFO", ""}, {"$JS.domain.API.INFO", ""},
		{"$SYS.REQ.SERVER.PING", ""}, {"$SYS.REQ.ACCOUNT.PING.STATZ", ""}, {"$SYS.REQ.USER.INFO", ""}, {"$SRV.PING", ""},
	}
	l := a.connect(t, url, a.may(t, own))
	heard := l.listen(t, live)
	for _, attack := range attacks {
		for _, reply := range []string{"", live, "_INBOX.mine", "helix.live.victim", "helix.log.0.own", "helix.log.0.victim"} {
			if reply != "" && attack.subject[0] != '$' {
				continue // nobody answers
			}
			m := &nats.Msg{Subject: attack.subject, Reply: reply, Data: []byte(attack.body), Header: forged}
			require.NoError(t, l.PublishMsg(m))
			l.requireRefused(t, attack.subject)
			n, _, err := heard.Pending()
			require.NoError(t, err)
			require.Zero(t, n, "%s to %s", attack.subject, reply)
		}
	}
	require.NoError(t, a.admin.Flush())
	for n, _, err := all.Pending(); n > 0; n, _, err = all.Pending() {
		require.NoError(t, err)
		m, err := all.NextMsg(time.Minute)
		require.NoError(t, err)
		sealed := strings.HasPrefix(m.Subject, "helix.seg.0.") && m.Header.Get("Helix-Kind") == "" && len(m.Data) > 1
		require.True(t, sealed, "heard on %s", m.Subject) // by helixd, of what was said before
	}
	require.NoError(t, all.Unsubscribe())
	require.Equal(t, before, a.stored(t))
	for session, want := range heads {
		head, err := a.log.Head(t.Context(), session)
		require.NoError(t, err)
		require.Equal(t, want, head)
	}
}

// badRights: those that do not hold let nobody in, as nobody else either.
func (a *audience) badRights(t *testing.T, url string) {
	account, err := nkeys.FromSeed([]byte(a.seed))
	require.NoError(t, err)
	strangers, err := subscriber.NewKey()
	require.NoError(t, err)
	stranger, err := subscriber.New(strangers, nil)
	require.NoError(t, err)
	right, err := a.minter.Mint(own, 0, 0)
	require.NoError(t, err)
	other, err := a.minter.Mint(victim, 0, 0)
	require.NoError(t, err)
	foreign, err := stranger.Mint(own, 0, 0)
	require.NoError(t, err)
	claims, err := jwt.DecodeUserClaims(right.JWT)
	require.NoError(t, err)
	claims.Expires = time.Now().Add(-time.Minute).Unix()
	expired, err := claims.Encode(account)
	require.NoError(t, err)
	user, err := nkeys.FromSeed([]byte(right.Seed))
	require.NoError(t, err)
	parts, others := strings.Split(right.JWT, "."), strings.Split(other.JWT, ".")
	bare := func(token string) nats.Option {
		return nats.UserJWT(func() (string, error) { return token, nil }, func([]byte) ([]byte, error) { return nil, nil })
	}
	for name, option := range map[string]nats.Option{
		"expired":             nats.UserJWTAndSeed(expired, right.Seed),
		"another key's":       nats.UserJWTAndSeed(foreign.JWT, foreign.Seed),
		"another's seed":      nats.UserJWTAndSeed(right.JWT, other.Seed),
		"no seed":             bare(right.JWT),
		"a changed session":   nats.UserJWTAndSeed(parts[0]+"."+others[1]+"."+parts[2], right.Seed),
		"a changed signature": nats.UserJWTAndSeed(parts[0]+"."+parts[1]+"."+others[2], right.Seed),
		"no signature":        nats.UserJWTAndSeed(parts[0]+"."+parts[1]+".", right.Seed),
		"no algorithm":        nats.UserJWTAndSeed("eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0."+parts[1]+".", right.Seed),
		"not a token":         nats.UserJWTAndSeed("x", right.Seed),
		"the seed as an nkey": nats.Nkey(claims.Subject, user.Sign),
	} {
		// With which words depends on who is quicker, the refusal or the end of the connection.
		l, err := a.tryConnect(url, option)
		require.Error(t, err, name)
		require.Nil(t, l.Conn)
	}
	l, err := a.tryConnect(url, nats.UserJWTAndSeed(right.JWT, right.Seed))
	require.NoError(t, err, "the others differ from this")
	l.Close()
}

// expiry: the connection ends with the right, and there is no other one.
func (a *audience) expiry(t *testing.T, url string) {
	var right subscriber.Right
	var may nats.Option
	var l listener
	var closed chan struct{}
	inTime := func(ttl time.Duration) bool {
		var err error
		right, err = a.minter.Mint(own, 0, ttl)
		require.NoError(t, err)
		closed, may = make(chan struct{}), nats.UserJWTAndSeed(right.JWT, right.Seed)
		over := closed
		if l, err = a.tryConnect(url, may, nats.ClosedHandler(func(*nats.Conn) { close(over) })); err != nil {
			return false
		}
		t.Cleanup(l.Close)
		heard, err := l.SubscribeSync(right.Subject)
		if err != nil || l.Flush() != nil {
			return false
		}
		a.say(t, own, "in time")
		m, err := heard.NextMsg(time.Minute)
		return err == nil && m.Subject == right.Subject && strings.Contains(string(m.Data), "in time")
	}
	ttl := 2 * time.Second
	for ; !inTime(ttl); ttl *= 2 { // a busy machine may come too late
		require.Less(t, ttl, time.Minute, "it hears nothing")
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		require.Fail(t, "it continues")
	}
	require.False(t, time.Now().Before(right.ExpiresAt.Add(-time.Second)), "not much too early")
	require.ErrorIs(t, <-l.errs, nats.ErrAuthExpired)
	a.say(t, own, "too late")
	require.Eventually(t, func() bool {
		l, err := a.tryConnect(url, may)
		if err == nil {
			l.Close()
		}
		return err != nil
	}, time.Minute, 10*time.Millisecond)
}

// requireRefused wants every try to connect to fail, and one to say why: over
// WebSocket that is lost where the connection ends while more is sent.
func requireRefused(t *testing.T, connect func() error) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := connect()
		require.Error(t, err)
		return errors.Is(err, nats.ErrAuthorization)
	}, time.Minute, time.Millisecond)
}
