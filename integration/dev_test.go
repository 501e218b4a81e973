package integration_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// helixd runs a command to its end.
func helixd(t *testing.T, args ...string) string {
	t.Helper()
	testkit.Slow(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program(t), args...).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		require.Fail(t, "helixd failed", "%v: %s", args, exit.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

// TestDevTwice does what the README's tour does, two times on the same data.
func TestDevTwice(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nats := freeAddress(t)
	d := newDaemon(t, "dev", "--data-dir", filepath.Join(t.TempDir(), "data"), "--nats-listen", nats)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, session := range []string{"first", "second"} {
		d.start()
		require.Eventually(t, func() bool { return strings.Contains(d.logs.String(), "curl") },
			time.Minute, time.Millisecond, "dev says what to do next")
		d.ok("/start", map[string]any{"sessionId": session, "agentType": "planner", "message": "Plan."})
		f := follow(ctx, d.url, session)
		<-f.done
		f.checkAgainst(t, d.records(session))

		for _, source := range [][]string{{"--server", d.url}, {"--nats", "nats://" + nats}} {
			run := func(args ...string) string { return helixd(t, append(args, source...)...) }
			tail := strings.Split(strings.TrimSpace(run("tail", session, "--lines")), "\n")
			require.Len(t, tail, len(f.Seen)+1)
			require.Equal(t, "ended", tail[len(tail)-1])
			require.Contains(t, run("tail", session), "  A short plan is enough.\n", "what is streamed in pieces is one paragraph")
			require.Contains(t, run("state", session), `"steps": [`)
			require.Contains(t, run("state", session, "--at", "1", "--json"), `"sequence":1`)
			records := run("records", session)
			require.Len(t, strings.Split(strings.TrimSpace(records), "\n"), len(d.records(session)))
			require.Contains(t, records, "model_turn")
			require.Eventually(t, func() bool { // the rows may lag for a moment
				return strings.Contains(run("sessions", "--agent", "planner", "--status", "completed"), session)
			}, 2*time.Minute, 10*time.Millisecond)
			require.NotContains(t, run("sessions", "--agent", "nobody"), session)
		}
		require.Eventually(t, func() bool {
			return strings.Contains(helixd(t, "runs", "--server", d.url), session)
		}, 2*time.Minute, 10*time.Millisecond)
		out, err := exec.CommandContext(ctx, program(t), "runs", "--nats", "nats://"+nats).CombinedOutput()
		require.Error(t, err, "NATS alone has no read models")
		require.Contains(t, string(out), "keeps no read models")
		d.stop()
	}
	d.start()
	require.Eventually(t, func() bool {
		sessions := helixd(t, "sessions", "--server", d.url)
		return strings.Contains(sessions, "first") && strings.Contains(sessions, "second")
	}, 2*time.Minute, 10*time.Millisecond)
	require.Contains(t, helixd(t, "version"), "helixd ")
}

// TestStopEndsStreams: an operator's stop ends at once, with a run continuing
// and a client attached, and the run can be resumed.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	want := w.run(t, d, "calm", nil)
	got := w.run(t, d, "stopped", func() {
		d.stop()
		d.start()
	})
	require.JSONEq(t, want, got)
}

// TestServeRefuses: what can't work does not start.
func TestServeRefuses(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	w := newWorld(t)
	taken := busy(t)
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inUse.Close()
	port := inUse.Addr().String()
	joins := configFile(t, "nats: {cluster: {listen: '"+port+"', routes: ['nats://127.0.0.1:1']}}\n")
	sockets := configFile(t, "nats: {websocket: {listen: '"+port+"'}}\n")
	pages := configFile(t, "auth: {tokens: [{token: secret}]}\ncors: {origins: ['*']}\nnats: {websocket: {listen: '127.0.0.1:0'}}\n")
	for name, tc := range map[string]struct{ args, want string }{
		"no authentication": {"serve --config " + w.config, "no caller could be authenticated: set auth.tokens"},
		"the whole network": {"serve --allow-unauthenticated --listen 0.0.0.0:0 --config " + w.config, "is not a loopback address"},
		"NATS for the whole network": {
			"serve --allow-unauthenticated --listen 127.0.0.1:0 --nats-listen 0.0.0.0:0 --config " + w.config,
			"nats.listen: 0.0.0.0:0 is not a loopback address: set nats.user and nats.password, or give --force-unauthenticated",
		},
		"NATS for all web pages": {
			"serve --listen 127.0.0.1:0 --config " + pages,
			"nats.websocket.listen: with the origin * in cors.origins every web page could read all sessions: set nats.user",
		},
		"dev for all":  {"dev --listen 127.0.0.1:0 --nats-listen 0.0.0.0:0", "dev lets everybody read"},
		"a bad flag":   {"serve --durability perhaps --config " + w.config, "--durability: durability: "},
		"no such file": {"serve --config /nowhere/helix.yaml", "no such file"},
		"a busy port":  {"dev --listen " + strings.TrimPrefix(taken, "http://"), "address already in use by helixd (process "},
		"a busy port of NATS": {
			"serve --allow-unauthenticated --listen 127.0.0.1:0 --nats-listen " + port + " --config " + w.config,
			"nats.listen: listen tcp " + port + ": bind: address already in use by integration.tes (process " + strconv.Itoa(os.Getpid()) + "); choose another with --nats-listen",
		},
		"a busy port for web pages": {"serve --allow-unauthenticated --listen 127.0.0.1:0 --config " + sockets, "choose another with nats.websocket.listen in"},
		"a busy port for nodes":     {"serve --allow-unauthenticated --listen 127.0.0.1:0 --config " + joins, "choose another with nats.cluster.listen in"},
	} {
		cmd := exec.CommandContext(t.Context(), program(t), strings.Fields(tc.args)...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		require.Error(t, err, name)
		require.Contains(t, string(out), tc.want, name)
	}
}

// TestServeOpensNATS: what may start without being refused, and which of it
// is worth a warning.
func TestServeOpensNATS(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const warning = "level=WARN msg=\"nats.listen: every user of this machine can read live streams"
	w := newWorld(t)
	raw, err := os.ReadFile(w.config)
	require.NoError(t, err)
	withTokens := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(withTokens, append(raw, "\nauth: {tokens: [{token: secret}]}\n"...), 0o600))
	withUser := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(withUser, append(raw, "\nauth: {tokens: [{token: secret}]}\nnats: {user: ops, password: secret}\n"...), 0o600))
	for name, tc := range map[string]struct {
		args  string
		warns bool
	}{
		"no tokens, no user":         {"--allow-unauthenticated --nats-listen 127.0.0.1:0 --config " + w.config, false},
		"tokens, no user":            {"--nats-listen 127.0.0.1:0 --config " + withTokens, true},
		"tokens, no NATS clients":    {"--config " + withTokens, false},
		"tokens and a user":          {"--nats-listen 127.0.0.1:0 --config " + withUser, false},
		"a user, the whole network":  {"--nats-listen 0.0.0.0:0 --config " + withUser, false},
		"forced, the whole network":  {"--force-unauthenticated --nats-listen 0.0.0.0:0 --config " + w.config, false},
		"an existing NATS of others": {"--nats-listen 0.0.0.0:0 --nats-url nats://127.0.0.1:1 --config " + withTokens, false},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(strings.Fields("serve "+tc.args), "--data-dir", filepath.Join(t.TempDir(), "data"))
			d := newDaemon(t, args...)
			if strings.Contains(tc.args, "--nats-url") {
				out, err := exec.CommandContext(t.Context(), program(t), d.args...).CombinedOutput()
				require.Error(t, err)
				require.NotContains(t, string(out), "nats.listen", "it is not used")
				return
			}
			d.start()
			require.Equal(t, tc.warns, strings.Contains(d.logs.String(), warning), "%s", d.logs)
			d.stop()
		})
	}
}

// busy returns the URL of a server that runs already.
func busy(t *testing.T) string {
	d := newDaemon(t, "dev", "--data-dir", filepath.Join(t.TempDir(), "data"), "--nats-listen", freeAddress(t))
	d.start()
	return d.url
}
