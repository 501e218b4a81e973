package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// diagnosis is what helixd doctor --json prints, and its exit code.
type diagnosis struct {
	Version            string
	Checks             []doctor.Check
	Warnings, Problems int
	Error              string
	code               int
}

// diagnose runs helixd doctor in an empty folder.
func diagnose(t *testing.T, args ...string) (d diagnosis) {
	t.Helper()
	testkit.Slow(t)
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{"doctor", "--json"}, args...)...)
	cmd.Dir = t.TempDir()
	var out, logs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &logs
	_ = cmd.Run() // the exit code tells
	d.code = cmd.ProcessState.ExitCode()
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&d), "%s", &logs)
	require.NotEmpty(t, d.Version)
	for _, c := range d.Checks {
		require.NotEmpty(t, c.Found)
		require.Equal(t, c.Status == doctor.Healthy, c.Advice == "", "%+v", c)
	}
	return d
}

// status is how the checks with an id came out; the worst counts.
func (d diagnosis) status(id string) (worst doctor.Health) {
	order := []doctor.Health{"", doctor.Healthy, doctor.Warning, doctor.Problem}
	for _, c := range d.Checks {
		if c.ID == id && slices.Index(order, c.Status) > slices.Index(order, worst) {
			worst = c.Status
		}
	}
	return worst
}

// requireSays demands a check with an id, a status, and advice that names what
// to change.
func (d diagnosis) requireSays(t *testing.T, id string, status doctor.Health, advice string) {
	t.Helper()
	for _, c := range d.Checks {
		if c.ID == id && c.Status == status && strings.Contains(c.Found+" "+c.Advice, advice) {
			return
		}
	}
	require.Failf(t, "not said", "%s %s: %q in %+v", id, status, advice, d.Checks)
}

// A deployment as it should be gets no remark, and keeps every byte.
func TestDoctorOnAHealthyFolder(t *testing.T) {
	testkit.Long(t)
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "data")

	fresh := diagnose(t, "--data-dir", dir)
	require.Zero(t, fresh.code, "%+v", fresh)
	fresh.requireSays(t, "folder", doctor.Healthy, "helixd serve creates it")
	require.NoDirExists(t, dir)
	leftovers, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Empty(t, leftovers)

	t.Setenv("HELIX_NATS_USER", "ops")
	t.Setenv("HELIX_NATS_PASSWORD", "secret")
	natsListen := freeAddress(t)
	daemon := newDaemon(t, "serve", "--config", w.config, "--allow-unauthenticated", "--data-dir", dir, "--nats-listen", natsListen)
	daemon.start()
	w.run(t, daemon, "session", nil)
	nc, err := nats.Connect(natsListen, nats.UserInfo("ops", "secret"), nats.Timeout(time.Minute))
	require.NoError(t, err)
	before := settled(t, nc)

	used := diagnose(t, "--config", w.config, "--data-dir", dir, "--listen", strings.TrimPrefix(daemon.url, "http://"), "--nats-listen", natsListen)
	require.Zero(t, used.code, "%+v", used)
	require.Equal(t, 1, used.Warnings, "%+v", used)
	used.requireSays(t, "config", doctor.Warning, "accepts no caller")
	used.requireSays(t, "folder", doctor.Healthy, "is in use by a daemon")
	used.requireSays(t, "daemon", doctor.Healthy, daemon.url+" is ready")
	used.requireSays(t, "durability", doctor.Healthy, "survive a power loss")
	used.requireSays(t, "permissions", doctor.Healthy, "may use all of")
	used.requireSays(t, "security", doctor.Healthy, "as user ops")
	used.requireSays(t, "streams", doctor.Healthy, fmt.Sprintf("%d streams", len(before)))
	require.Equal(t, before, stored(t, nc), "nothing is stored, created or changed")

	byHTTP := diagnose(t, "--server", daemon.url)
	require.Zero(t, byHTTP.code, "%+v", byHTTP)
	byHTTP.requireSays(t, "durability", doctor.Healthy, "fsync")
	byHTTP.requireSays(t, "clock", doctor.Healthy, "within 2 s")
	nc.Close()
	daemon.stop()

	stopped := diagnose(t, "--data-dir", dir)
	require.Zero(t, stopped.code, "%+v", stopped)
	require.Zero(t, stopped.Warnings, "%+v", stopped)
	for _, id := range []string{
		"config", "folder", "disk", "connection", "permissions", "jetstream", "versions", "streams", "partitions", "settings",
		"replicas", "durability", "limits", "storage", "clock",
	} {
		require.Equal(t, doctor.Healthy, stopped.status(id), id)
	}
	stopped.requireSays(t, "durability", doctor.Healthy, "fsync")

	daemon.start()
	nc, err = nats.Connect(natsListen, nats.UserInfo("ops", "secret"), nats.Timeout(time.Minute))
	require.NoError(t, err)
	defer nc.Close()
	require.Equal(t, before, settled(t, nc))
}

// settled is what is stored once the run's session is off the list and sealed,
// and the read models follow the log.
func settled(t *testing.T, nc *nats.Conn) (streams map[string]string) {
	t.Helper()
	require.Eventually(t, func() bool {
		streams = stored(t, nc)
		return strings.Contains(streams["HELIX_RUNS"], " 0 messages") && strings.Contains(streams["HELIX_SEG_0"], " 1 messages") &&
			strings.HasSuffix(streams["HELIX_LOG_0"], " 1 consumers")
	}, clusterPatience, 10*time.Millisecond)
	return streams
}

// stored is what all streams hold and how they are set up.
func stored(t *testing.T, nc *nats.Conn) map[string]string {
	t.Helper()
	found := map[string]string{}
	list := streams(t, nc).ListStreams(t.Context())
	for s := range list.Info() {
		if strings.HasPrefix(s.Config.Name, "HELIX_") {
			config, err := json.Marshal(s.Config)
			require.NoError(t, err)
			found[s.Config.Name] = fmt.Sprintf("%s %d messages, %d bytes, first %d, last %d, %d consumers",
				config, s.State.Msgs, s.State.Bytes, s.State.FirstSeq, s.State.LastSeq, s.State.Consumers)
		}
	}
	require.NoError(t, list.Err())
	return found
}

// Something that can't be checked is reported, with what to change, and has another exit
// code than a problem that was found.
func TestDoctorThatCanNotLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := diagnose(t, "--config", w.config)
	require.Zero(t, d.code)
	d.requireSays(t, "config", doctor.Warning, "set auth.tokens or auth.jwt")

	file := configFile(t, "listen: 127.0.0.1:1\nnats:\n  replicas: 2\n")
	d = diagnose(t, "--config", file)
	require.Equal(t, 1, d.code)
	d.requireSays(t, "config", doctor.Problem, "helix.yaml:3: nats.replicas: ")

	d = diagnose(t, "--nats", "nats://tell:nobody@"+freeAddress(t))
	require.Equal(t, 2, d.code)
	require.NotEmpty(t, d.Error)
	d.requireSays(t, "connection", doctor.Problem, "correct nats.url")
	require.NotContains(t, fmt.Sprint(d), "nobody")

	url := newServer(t, "closed", func(o *server.Options) { o.Username, o.Password = "u", "p" }).ClientURL()
	d = diagnose(t, "--nats-url", url)
	require.Equal(t, 2, d.code)
	d.requireSays(t, "connection", doctor.Problem, "correct nats.credentials")

	d = diagnose(t, "--server", "http://"+freeAddress(t))
	require.Equal(t, 2, d.code)
	d.requireSays(t, "daemon", doctor.Problem, "start helixd serve")

	d = diagnose(t, "--nats", newServer(t, "core", func(o *server.Options) { o.JetStream = false }).ClientURL())
	require.Equal(t, 1, d.code)
	d.requireSays(t, "jetstream", doctor.Problem, "enable JetStream")
}

func TestDoctorOnOneOutsideServer(t *testing.T) {
	testkit.Long(t)
	url := newServer(t, "outside", nil).ClientURL()
	nc := connect(t, url)
	js := streams(t, nc)

	d := diagnose(t, "--nats-url", url)
	require.Zero(t, d.code, "%+v", d)
	d.requireSays(t, "streams", doctor.Healthy, "none yet")
	d.requireSays(t, "durability", doctor.Warning, "nats.replicas: 3")
	require.Empty(t, stored(t, nc), "nothing was created")

	jetstreamtest.Open(t, nc, nil)
	config := streamConfig(t, js, "HELIX_LOG_0")
	config.MaxAge, config.Discard, config.RePublish = time.Hour, natsjs.DiscardOld, nil
	config.MaxMsgs = 10
	_, err := js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	for range 9 {
		_, err = js.Publish(t.Context(), "helix.log.0.s", nil)
		require.NoError(t, err)
	}
	d = diagnose(t, "--nats-url", url)
	require.Equal(t, 1, d.code)
	d.requireSays(t, "settings", doctor.Problem, "set max_age of stream HELIX_LOG_0 to 0s: nats stream edit HELIX_LOG_0")
	d.requireSays(t, "settings", doctor.Problem, "set discard of stream HELIX_LOG_0 to DiscardNew")
	d.requireSays(t, "settings", doctor.Problem, "set republish of stream HELIX_LOG_0 to ")
	d.requireSays(t, "limits", doctor.Warning, "raise max_msgs of stream HELIX_LOG_0")

	t.Setenv("HELIX_NATS_REPLICAS", "3")
	d = diagnose(t, "--nats-url", url)
	require.Equal(t, 1, d.code)
	d.requireSays(t, "settings", doctor.Problem, "set nats.replicas to 1, or the stream's replicas to 3")
}

func streamConfig(t *testing.T, js natsjs.JetStream, name string) natsjs.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	return s.CachedInfo().Config
}

func TestDoctorOnALogInMemory(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	url := newServer(t, "outside", nil).ClientURL()
	jetstreamtest.Open(t, connect(t, url), &jetstream.Options{Memory: true})
	d := diagnose(t, "--nats", url)
	require.Equal(t, 1, d.code)
	d.requireSays(t, "settings", doctor.Problem, "storage of stream HELIX_LOG_0 can't be changed")
	d.requireSays(t, "durability", doctor.Problem, "keep the streams in files")
}

// account gives a server one account with limits, and a user of it.
func account(t *testing.T, limits string) func(*server.Options) {
	return func(o *server.Options) {
		require.NoError(t, o.ProcessConfigString(fmt.Sprintf(
			`accounts { A { jetstream: %s, users: [{user: u, password: p}] }, SYS: {users: [{user: s, password: s}]} }, system_account: SYS`, limits)))
	}
}

func TestDoctorOnSmallLimits(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(*server.Options)
		fill   int // bytes in the log
		status doctor.Health
		advice string
	}{
		{"streams", account(t, "{max_file: 1GB, max_mem: 1MB, max_streams: 2}"), 0, doctor.Problem, "limit of streams (max_streams) to 5"},
		{"bytes", account(t, "{max_file: 1GB, max_mem: 1MB, max_stream_bytes: true}"), 0, doctor.Problem, "max_stream_bytes"},
		{"nearly full", account(t, "{max_file: 1MB, max_mem: 1MB}"), 900 << 10, doctor.Warning, "raise the account's storage limit"},
		{"full", account(t, "{max_file: 1MB, max_mem: 1MB}"), 1020 << 10, doctor.Problem, "raise the account's storage limit"},
		{"payload", func(o *server.Options) {
			account(t, "enabled")(o)
			o.MaxPayload = 512 << 10
		}, 0, doctor.Problem, "set max_payload to 1MB"},
		{"headers", func(o *server.Options) {
			account(t, "enabled")(o)
			o.NoHeaderSupport = true
		}, 0, doctor.Problem, "remove no_header_support"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url := newServer(t, "small", tc.change).ClientURL()
			url = strings.Replace(url, "nats://", "nats://u:p@", 1)
			if tc.fill > 0 {
				nc := connect(t, url)
				jetstreamtest.Open(t, nc, nil)
				js := streams(t, nc)
				for left := tc.fill; left > 0; left -= 64 << 10 {
					_, err := js.Publish(t.Context(), "helix.log.0.s", make([]byte, min(left, 64<<10)-256))
					require.NoError(t, err)
				}
			}
			d := diagnose(t, "--nats-url", url)
			require.Equal(t, tc.status, d.status("limits"), "%+v", d)
			if tc.advice != "" {
				d.requireSays(t, "limits", tc.status, tc.advice)
			}
			require.Equal(t, tc.status == doctor.Problem, d.code == 1, d.code)
		})
	}
}

// A certificate that ends soon, and one that nobody vouches for.
func TestDoctorOnTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, deployment.WriteCertificate(cert, key, 5*24*time.Hour))
	url := newServer(t, "tls", func(o *server.Options) {
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key})
		require.NoError(t, err)
		o.TLS, o.TLSConfig = true, config
	}).ClientURL()
	d := diagnose(t, "--nats-url", url)
	require.Equal(t, 2, d.code)
	d.requireSays(t, "connection", doctor.Problem, "correct nats.tls")
	t.Setenv("HELIX_NATS_TLS_CA", cert)
	d = diagnose(t, "--nats-url", url)
	require.Zero(t, d.code, "%+v", d)
	d.requireSays(t, "security", doctor.Warning, "renew the certificate of the NATS server")
	require.NoError(t, deployment.WriteCertificate(cert, key, 100*24*time.Hour))
	t.Setenv("HELIX_NATS_TLS_CA", filepath.Join(dir, "nothing.pem"))
	d = diagnose(t, "--nats-url", url)
	require.Equal(t, 2, d.code)
	d.requireSays(t, "connection", doctor.Problem, "nothing.pem")
}

func TestDoctorOnAClusterThatLacksAServer(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nc := connect(t, c.url())
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Replicas: 3})
	_, err := eventlog.AppendOnce(t.Context(), log, "s", "w", 0, []eventlog.Entry{logtest.Text("s", "x")})
	require.NoError(t, err)
	before := stored(t, nc)
	var d diagnosis
	require.Eventually(t, func() bool {
		d = diagnose(t, "--nats", c.url())
		return d.code == 0 && d.Warnings == 0
	}, clusterPatience, 100*time.Millisecond, "a new stream's replicas become current: %+v", &d)
	d.requireSays(t, "replicas", doctor.Healthy, "3 of each stream")
	d.requireSays(t, "versions", doctor.Healthy, "n2 "+server.VERSION)
	d.requireSays(t, "clock", doctor.Healthy, "n0, n1, n2")
	d.requireSays(t, "durability", doctor.Healthy, "replicated×3")
	require.Equal(t, before, stored(t, nc), "nothing is stored, created or changed")

	gone := c.servers[2]
	gone.Shutdown()
	gone.WaitForShutdown()
	require.Eventually(t, func() bool {
		d = diagnose(t, "--nats", c.url())
		return d.code == 0 && d.status("replicas") == doctor.Warning && d.status("jetstream") == doctor.Healthy // what n2 led has another leader
	}, clusterPatience, 100*time.Millisecond, "two of three servers do, and the loss is seen: %+v", &d)
	d.requireSays(t, "replicas", doctor.Warning, "server n2")
	d.requireSays(t, "versions", doctor.Warning, "n2")

	c.servers[1].Shutdown()
	c.servers[1].WaitForShutdown()
	require.Eventually(t, func() bool {
		d = diagnose(t, "--nats", c.url())
		return d.status("replicas") == doctor.Problem || d.status("jetstream") == doctor.Problem
	}, clusterPatience, 100*time.Millisecond, "%+v", &d)
	require.Equal(t, 1, d.code)
}
