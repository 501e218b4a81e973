package integration_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// templates are the documented accounts and permissions of deployments.
const templates = "../cmd/helixd/examples/nats"

// entity is an account or a user with its key.
type entity struct {
	nkeys.KeyPair
	id, seed string
}

func newEntity(t *testing.T, create func() (nkeys.KeyPair, error)) entity {
	t.Helper()
	key, err := create()
	require.NoError(t, err)
	id, err := key.PublicKey()
	require.NoError(t, err)
	seed, err := key.Seed()
	require.NoError(t, err)
	return entity{key, id, string(seed)}
}

// nscCalls are the flags of a script's calls of nsc, by what it is called for.
type nscCalls map[string]map[string]string

func (c nscCalls) list(call, flag string) jwt.StringList { return strings.Split(c[call][flag], ",") }

// runNSC runs the template for nsc on a stand-in that writes down what it is
// called with: an nsc is not everywhere.
func runNSC(t *testing.T, signing, subscribers entity) nscCalls {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(templates, "nsc.sh"))
	require.NoError(t, err)
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nsc"), fmt.Appendf(nil, `#!/bin/sh
for word; do printf '%%s\037' "$word" >> '%s'; done
echo >> '%s'
case "$1 $2" in
"generate nkey") printf '%%s\n%%s\n' '%s' '%s' ;;
"describe account") echo '"%s"' ;;
"generate activation") touch live.activation ;;
"generate creds") echo creds ;;
esac
`, calls, calls, signing.seed, signing.id, subscribers.id), 0o700))
	work := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", script)
	cmd.Dir, cmd.Env = work, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "nats.subscribers.account: "+subscribers.id)
	seed, err := os.ReadFile(filepath.Join(work, "subscribers.nk"))
	require.NoError(t, err)
	require.Equal(t, signing.seed+"\n", string(seed))
	left, err := os.ReadDir(work)
	require.NoError(t, err)
	require.Len(t, left, 2, "and helixd.creds")
	for _, f := range left {
		info, err := f.Info()
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), f.Name())
	}
	raw, err := os.ReadFile(calls)
	require.NoError(t, err)
	all := nscCalls{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "\037"), "\037")
		flags := map[string]string{}
		for i := 2; i < len(words); i++ {
			require.True(t, strings.HasPrefix(words[i], "--"), "%q", words)
			if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
				flags[words[i]] = words[i+1]
				i++
			} else {
				flags[words[i]] = "yes"
			}
		}
		name := words[0] + " " + words[1]
		for _, flag := range []string{"--account", "--name"} {
			if flags[flag] != "" {
				name += " " + flags[flag]
			}
		}
		all[name] = flags
	}
	return all
}

// operated is a deployment in operator mode, set up as the template for nsc
// says, with TLS.
type operated struct {
	dir                  string // with cert.pem and key.pem
	trusted              *x509.CertPool
	accounts             string // what a server's file says of them, and of TLS
	creds                string // the file of helixd's own
	own, admin           []byte // the same, and those of who may do everything
	signing, subscribers entity
}

func newOperated(t *testing.T) *operated {
	t.Helper()
	operator := newEntity(t, nkeys.CreateOperator)
	system, helix, subscribers, signing := newEntity(t, nkeys.CreateAccount), newEntity(t, nkeys.CreateAccount), newEntity(t, nkeys.CreateAccount), newEntity(t, nkeys.CreateAccount)
	calls := runNSC(t, signing, subscribers)
	encoded := func(claims jwt.Claims, by entity) string {
		vr := jwt.CreateValidationResults()
		claims.Validate(vr)
		require.Empty(t, vr.Errors())
		token, err := claims.Encode(by)
		require.NoError(t, err)
		return token
	}

	op := jwt.NewOperatorClaims(operator.id)
	op.Name, op.SystemAccount = "operator", system.id
	sys := jwt.NewAccountClaims(system.id)
	sys.Name = "SYS"

	log := jwt.NewAccountClaims(helix.id)
	log.Name = "HELIX"
	limits := calls["edit account HELIX"]
	for _, flag := range []string{"--js-disk-storage", "--js-mem-storage", "--js-streams", "--js-consumer"} {
		require.Equal(t, "-1", limits[flag])
	}
	log.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	export := calls["add export HELIX live"]
	log.Exports.Add(&jwt.Export{
		Name: "live", Subject: jwt.Subject(export["--subject"]), Type: jwt.Stream, TokenReq: export["--private"] == "yes",
	})

	hearers := jwt.NewAccountClaims(subscribers.id)
	hearers.Name = "HELIX_SUBSCRIBERS"
	edit := calls["edit account HELIX_SUBSCRIBERS"]
	require.Equal(t, []string{"yes", "0", "yes"}, []string{edit["--js-disable"], edit["--exports"], edit["--disallow-bearer"]})
	hearers.Limits.Exports, hearers.Limits.DisallowBearer = 0, true
	hearers.SigningKeys.Add(edit["--sk"])
	active := calls["generate activation HELIX"]
	activation := jwt.NewActivationClaims(active["--target-account"])
	activation.ImportSubject, activation.ImportType = jwt.Subject(active["--subject"]), jwt.Stream
	require.NotEmpty(t, calls["add import HELIX_SUBSCRIBERS"])
	hearers.Imports.Add(&jwt.Import{
		Name: "live", Subject: activation.ImportSubject, Account: helix.id, Token: encoded(activation, helix), Type: jwt.Stream,
	})

	user := func(change func(*jwt.UserClaims)) []byte {
		key := newEntity(t, nkeys.CreateUser)
		claims := jwt.NewUserClaims(key.id)
		change(claims)
		text, err := jwt.FormatUserConfig(encoded(claims, helix), []byte(key.seed))
		require.NoError(t, err)
		return text
	}
	const helixd = "add user HELIX helixd"
	own := user(func(c *jwt.UserClaims) {
		c.Pub.Allow, c.Sub.Allow = calls.list(helixd, "--allow-pub"), calls.list(helixd, "--allow-sub")
		require.Equal(t, "yes", calls[helixd]["--allow-pub-response"])
		c.Resp = &jwt.ResponsePermission{MaxMsgs: 1}
	})
	admin := user(func(*jwt.UserClaims) {})

	d := &operated{dir: t.TempDir(), own: own, admin: admin, signing: signing, subscribers: subscribers}
	d.trusted = selfSigned(t, d.dir)
	d.creds = d.file(t, "helixd.creds", string(own))
	d.accounts = fmt.Sprintf(`
operator: %q
resolver: MEMORY
resolver_preload { %s: %s, %s: %s, %s: %s }
tls { cert_file: %[8]q, key_file: %[9]q }
`, d.file(t, "operator.jwt", encoded(op, operator)), system.id, encoded(sys, operator), helix.id, encoded(log, operator),
		subscribers.id, encoded(hearers, operator), filepath.Join(d.dir, "cert.pem"), filepath.Join(d.dir, "key.pem"))
	return d
}

func (d *operated) file(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(d.dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// server runs one of the deployment, with its own part of the file.
func (d *operated) server(t *testing.T, name, own string) *server.Server {
	t.Helper()
	o, err := server.ProcessConfigFile(d.file(t, name+".conf", fmt.Sprintf(`
host: 127.0.0.1, port: -1, server_name: %s
jetstream { store_dir: %q, max_file: 1G, max_mem: 64M }
`, name, filepath.Join(d.dir, name))+d.accounts+own))
	require.NoError(t, err)
	return outsideServer(t, o)
}

// operatorAudience is that of a deployment in operator mode. It returns helixd's
// credentials.
func operatorAudience(t *testing.T) (a *audience, creds string) {
	t.Helper()
	d := newOperated(t)
	srv := d.server(t, "outside", fmt.Sprintf("websocket { host: 127.0.0.1, port: -1, tls { cert_file: %q, key_file: %q } }\n",
		filepath.Join(d.dir, "cert.pem"), filepath.Join(d.dir, "key.pem")))
	a = &audience{
		urls: map[string]string{"TCP": srv.ClientURL(), "WebSocket": srv.WebsocketURL()},
		tls:  &tls.Config{RootCAs: d.trusted, MinVersion: tls.VersionTLS12}, seed: d.signing.seed, account: d.subscribers.id,
	}
	require.True(t, strings.HasPrefix(a.urls["WebSocket"], "wss://"))
	var err error
	a.minter, err = subscriber.New(d.signing.seed, &subscriber.Options{Account: d.subscribers.id})
	require.NoError(t, err)
	a.admin = a.connect(t, a.urls["TCP"], nats.UserCredentialBytes(d.admin)).Conn
	return newAudience(t, a, a.connect(t, a.urls["TCP"], nats.UserCredentialBytes(d.own)).Conn), d.creds
}

// outsideServer runs one as it was configured.
func outsideServer(t *testing.T, configured *server.Options) *server.Server {
	t.Helper()
	return newServer(t, "outside", func(o *server.Options) {
		*o = *configured
		o.NoSigs = true
	})
}

// selfSigned writes cert.pem and key.pem of this machine's loopback address.
func selfSigned(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	file := filepath.Join(dir, "cert.pem")
	require.NoError(t, deployment.WriteCertificate(file, filepath.Join(dir, "key.pem"), 90*24*time.Hour))
	cert, err := os.ReadFile(file)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return pool
}

func TestSubscribersInOperatorMode(t *testing.T) {
	testkit.Full(t)
	t.Parallel() // most of it is waiting
	a, _ := operatorAudience(t)
	a.each(t, func(t *testing.T, url string) {
		t.Run("hear", func(t *testing.T) { a.hear(t, url) })
		t.Run("odd ids", func(t *testing.T) { a.oddIDs(t, url) })
		t.Run("hear nothing else", func(t *testing.T) { a.hearNothingElse(t, url) })
		t.Run("say nothing", func(t *testing.T) { a.sayNothing(t, url) })
		t.Run("bad rights", func(t *testing.T) { a.badRights(t, url) })
		t.Run("expiry", func(t *testing.T) { a.expiry(t, url) })
	})
}

// configuredAudience is that of a server whose file includes the template of
// accounts, with the session of the tests.
func configuredAudience(t *testing.T) *audience {
	t.Helper()
	t.Setenv("HELIXD_PASSWORD", "helixds")
	t.Setenv("READER_PASSWORD", "readers")
	dir := t.TempDir()
	accounts, err := os.ReadFile(filepath.Join(templates, "accounts.conf"))
	require.NoError(t, err)
	changed := bytes.Replace(accounts, []byte(`"helix.live.my-session"`), []byte(`"helix.live.`+own+`"`), 1)
	require.NotEqual(t, accounts, changed)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "accounts.conf"), changed, 0o600))
	config := filepath.Join(dir, "server.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
host: 127.0.0.1, port: -1, server_name: outside
jetstream { store_dir: %q, max_file: 1G, max_mem: 64M }
websocket { host: 127.0.0.1, port: -1, no_tls: true }
include "accounts.conf"
`, filepath.Join(dir, "jetstream")), 0o600))
	o, err := server.ProcessConfigFile(config)
	require.NoError(t, err)
	for _, account := range o.Accounts {
		if account.Name == "HELIX" {
			o.Users = append(o.Users, &server.User{Username: "admin", Password: "admins", Account: account})
		}
	}
	srv := outsideServer(t, o)
	a := &audience{
		urls:  map[string]string{"TCP": srv.ClientURL(), "WebSocket": srv.WebsocketURL()},
		users: map[string]nats.Option{own: nats.UserInfo("reader", "readers")},
	}
	a.admin = a.connect(t, a.urls["TCP"], nats.UserInfo("admin", "admins")).Conn
	return newAudience(t, a, a.connect(t, a.urls["TCP"], nats.UserInfo("helixd", "helixds")).Conn)
}

func TestSubscribersByConfiguration(t *testing.T) {
	a := configuredAudience(t)
	a.each(t, func(t *testing.T, url string) {
		t.Run("hear", func(t *testing.T) { a.hear(t, url) })
		t.Run("hear nothing else", func(t *testing.T) { a.hearNothingElse(t, url) })
		t.Run("say nothing", func(t *testing.T) { a.sayNothing(t, url) })
		requireRefused(t, func() error { _, err := a.tryConnect(url); return err })
	})
}

// The two templates permit helixd the same.
func TestTemplatesAgree(t *testing.T) {
	t.Setenv("HELIXD_PASSWORD", "x")
	t.Setenv("READER_PASSWORD", "x")
	o, err := server.ProcessConfigFile(filepath.Join(templates, "accounts.conf"))
	require.NoError(t, err)
	signing, subscribers := newEntity(t, nkeys.CreateAccount), newEntity(t, nkeys.CreateAccount)
	calls := runNSC(t, signing, subscribers)
	i := slices.IndexFunc(o.Users, func(u *server.User) bool { return u.Username == "helixd" })
	require.GreaterOrEqual(t, i, 0)
	may := o.Users[i].Permissions
	const helixd = "add user HELIX helixd"
	require.EqualValues(t, may.Publish.Allow, calls.list(helixd, "--allow-pub"))
	require.EqualValues(t, may.Subscribe.Allow, calls.list(helixd, "--allow-sub"))
	require.Empty(t, slices.Concat(may.Publish.Deny, may.Subscribe.Deny))
	require.NotNil(t, may.Response)
}

// The permissions of the templates are enough for all that helixd does.
func TestTemplatesPermissionsAreEnough(t *testing.T) {
	testkit.Slow(t)
	a, creds := operatorAudience(t)
	log := a.log
	large := strings.Repeat("x", 600<<10) // in several parts
	for i := range 5 {
		a.say(t, "long", fmt.Sprint(i))
	}
	a.say(t, "long", large)
	require.NoError(t, log.Seal(t.Context(), "long"))
	last := a.say(t, "long", "tail")
	_, err := log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	for r, err := range log.Follow(t.Context(), "long", 0) {
		require.NoError(t, err)
		if r.Sequence == last {
			break
		}
	}
	_, err = log.Erase(t.Context(), "long")
	require.NoError(t, err)
	for _, err := range log.Sessions(t.Context()) {
		require.NoError(t, err)
	}
	entries := make([]eventlog.Entry, 900)
	for i := range entries {
		entries[i] = logtest.Text("bulk", "more")
	}
	_, err = eventlog.AppendOnce(t.Context(), log, "bulk", "w", 0, entries)
	require.NoError(t, err)
	for _, err := range log.Read(t.Context(), "bulk", 0, 0) {
		require.NoError(t, err)
	}

	t.Setenv("HELIX_NATS_CREDENTIALS", creds)
	t.Setenv("HELIX_NATS_TLS_CA", filepath.Join(filepath.Dir(creds), "cert.pem"))
	found, err := exec.CommandContext(t.Context(), program(t), "doctor", "--nats-url", a.urls["TCP"]).CombinedOutput()
	require.NoError(t, err, "%s", found)
	require.Regexp(t, `ok +permissions`, string(found), "nor does the doctor miss any")
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--nats-url", a.urls["TCP"])
	d.start()
	w.run(t, d, "session", nil)
	status, _ := d.get("/sessions/session")
	require.Equal(t, http.StatusOK, status)
	d.stop()
	require.NotContains(t, strings.ToLower(d.logs.String()), "permission")
	require.NotContains(t, d.logs.String(), "level=ERROR")
}
