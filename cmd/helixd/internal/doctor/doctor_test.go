package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/projector/readmodel"
)

// doctorText runs the command by a clock, and returns what it prints.
func doctorText(t *testing.T, ctx context.Context, now func() time.Time, args ...string) (string, error) {
	t.Helper()
	var c struct {
		Doctor Command `cmd:""`
	}
	parser, err := kong.New(&c)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"doctor"}, args...))
	require.NoError(t, err)
	var out bytes.Buffer
	err = c.Doctor.runBy(&flags.Process{Ctx: ctx, Stdout: &out}, now)
	return out.String(), err
}

func TestDoctorPrintsText(t *testing.T) {
	url := clitest.Ready(t, 200, api.Readiness{
		Ready: true, Durability: "unknown", Guarantee: "little", Backend: "jetstream", Partitions: 1, Agents: []string{"a"}, Version: "v1",
	})
	out, err := doctorText(t, t.Context(), time.Now, "--server", url)
	require.NoError(t, err)
	require.Equal(t, ""+
		"ok       daemon       "+url+" is ready, helixd v1, partitions: 1, agents: a\n"+
		"warning  durability   unknown: little\n"+
		"                      -> keep the streams on a cluster of three with nats.replicas: 3\n"+
		"ok       clock        that of "+url+" is within 2 s of this machine's\n"+
		"warnings: 1, problems: 0\n", out)
}

func TestDoctorOnADaemonThatIsNotWell(t *testing.T) {
	r := api.Readiness{Durability: "fsync", Guarantee: "much", Backend: "jetstream", Refuses: "server version 2.11.4 is too old"}
	out, err := doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 503, r))
	require.ErrorIs(t, err, errProblems)
	require.Equal(t, 1, flags.ExitCode(err))
	require.Contains(t, out, "-> change what it names: server version 2.11.4 is too old")

	r.Refuses = ""
	out, err = doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 503, r))
	require.ErrorIs(t, err, errProblems)
	require.Contains(t, out, "helixd doctor --nats URL")

	out, err = doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 404, api.Readiness{}))
	require.Equal(t, 2, flags.ExitCode(err))
	require.Contains(t, out, "give the URL of helixd's HTTP server as --server")
}

// A daemon tells callers whom it does not know only whether it is ready.
func TestDoctorOnADaemonThatDoesNotKnowTheCaller(t *testing.T) {
	for status, want := range map[int]string{200: " is ready; it shows more", 503: " is not ready; it shows more"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]bool{"ready": status == 200})
		}))
		t.Cleanup(s.Close)
		out, err := doctorText(t, t.Context(), time.Now, "--server", s.URL)
		require.Equal(t, status != 200, errors.Is(err, errProblems), out)
		require.Contains(t, out, want)
		require.Contains(t, out, "-> give a token with the operation status: --token or HELIX_TOKEN\n")
	}
}

func TestDoctorOnAClusterNode(t *testing.T) {
	r := api.Readiness{
		Ready: true, Durability: "replicated×3", Backend: "jetstream",
		Replicas: &eventlog.Replicas{Wanted: 3, Present: 2, Missing: []string{"n3"}},
	}
	out, err := doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 200, r))
	require.ErrorIs(t, err, errProblems)
	require.Contains(t, out, "problem  replicas     replicated×3, but only 2 of 3 servers are there; missing: n3\n")
	require.Contains(t, out, "-> start the missing node, or replace it: with fewer than 2 of 3 nothing can be stored\n")

	r.Ready, r.Replicas = false, nil
	out, err = doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 503, r))
	require.ErrorIs(t, err, errProblems)
	require.Contains(t, out, "the quorum is lost")
	require.Contains(t, out, "-> start the nodes that are down")
}

// TestDoctorOnADegradedDaemon: what the daemon finds itself is reported once.
func TestDoctorOnADegradedDaemon(t *testing.T) {
	r := api.Readiness{
		Ready: true, Durability: "replicated×3", Backend: "jetstream", Replicas: &eventlog.Replicas{Wanted: 3, Present: 3, Lag: 20_000},
		ReadModels: &readmodel.Fresh{Current: true, Parked: 1},
		Degraded: []api.Degradation{
			{Check: "certificates", Target: "c.pem", Found: "tls.cert expires on 2026-12-01", Advice: "renew c.pem"},
			{Check: "quotas", Target: "red", Found: "the tenant red uses 95 % of its limit sessions", Advice: "raise tenants.red.sessions"},
			{Check: "disk", Problem: true, Target: "/data", Found: "0.1 GiB are free", Advice: "make room"},
			{Check: "replicas", Found: "a replica is 20000 operations behind", Advice: "look again"},
			{Check: "clock", Found: "the clocks are 5s apart", Advice: "set the clocks by NTP"},
			{Check: "listings", Found: "records that could not be used: 1", Advice: "helixd parked lists them"},
		},
	}
	out, err := doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 200, r))
	require.ErrorIs(t, err, errProblems)
	for _, want := range []string{
		"warning  certificates tls.cert expires on 2026-12-01\n                      -> renew c.pem\n", "warning  quotas       the tenant red uses 95 %",
		"problem  disk         0.1 GiB are free\n", "warning  replicas     a replica is 20000 operations behind\n", "warning  clock        the clocks are 5s apart\n",
		"warnings: 5, problems: 1\n",
	} {
		require.Contains(t, out, want)
	}
	require.Equal(t, 1, strings.Count(out, "records that could not be used"))

	r.Degraded = []api.Degradation{{Check: "quotas", Found: "the tenant \x1b[2J\u009b uses 95 %", Advice: "\x1b]0;"}}
	out, err = doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 200, r))
	require.NoError(t, err)
	require.Contains(t, out, "the tenant \ufffd[2J\ufffd uses 95 %")
	require.Equal(t, terminal.Readable(out), out, "the terminal would obey it")

	r = api.Readiness{
		Durability: "replicated×3", Backend: "jetstream",
		Degraded: []api.Degradation{{Check: "replicas", Problem: true, Found: "the log has no leader that answers", Advice: "start the nodes"}},
	}
	out, err = doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 503, r))
	require.ErrorIs(t, err, errProblems)
	require.Contains(t, out, "problems: 1\n")
}

// TestDoctorOnCertificates: those that end soon are reported, with their setting.
func TestDoctorOnCertificates(t *testing.T) {
	for want, ends := range map[string]time.Duration{
		"ok       certificates files: 1, the first expires on ": 60 * 24 * time.Hour,
		"warning  certificates tls.cert expires on ":            10 * 24 * time.Hour,
		"problem  certificates tls.cert expires on ":            24 * time.Hour,
		"problem  certificates tls.cert expired on ":            -time.Hour,
	} {
		certFile, keyFile := filepath.Join(t.TempDir(), "c.pem"), filepath.Join(t.TempDir(), "k.pem")
		require.NoError(t, deployment.WriteCertificate(certFile, keyFile, ends))
		path := clitest.Config(t, fmt.Sprintf("auth: {tokens: [{token: hunter2}]}\ntls: {cert: %q, key: %q}\n", certFile, keyFile))
		out, err := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only")
		require.Equal(t, strings.HasPrefix(want, "problem"), errors.Is(err, errProblems), out)
		require.Contains(t, out, want)
		if !strings.HasPrefix(want, "ok") {
			require.Contains(t, out, "-> renew "+certFile)
		}
	}
}

// TestDoctorOnAWrongKey: a server that does not know the credentials is a problem that names their setting.
func TestDoctorOnAWrongKey(t *testing.T) {
	var seen sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Method+" "+r.URL.Path, true)
		if r.Header.Get("Authorization") != "Bearer right" && r.Header.Get("X-Api-Key") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	look := func(key string) string {
		out, err := doctorText(t, t.Context(), time.Now, "--data-dir", filepath.Join(t.TempDir(), "data"), "--config", clitest.Config(t, fmt.Sprintf(`auth: {tokens: [{token: t}]}
memory: {embedder: {provider: openai, name: vec-x, apiKey: %[2]s, baseURL: "%[1]s/v1"}}
agents:
  a:
    model: {provider: openai, name: gpt-x, apiKey: %[2]s, baseURL: "%[1]s/v1"}
    remoteAgents: {r: {description: x, url: "%[1]s/agents", agentType: b, headers: {Authorization: Bearer %[2]s}}}
  b: {model: {provider: anthropic, name: c-x, apiKey: %[2]s, baseURL: "%[1]s"}}
`, server.URL, key)))
		require.Equal(t, key != "right", errors.Is(err, errProblems), out)
		require.NotContains(t, out, key)
		return out
	}
	out := look("right")
	for _, check := range []string{"models", "embedder", "remoteAgents"} {
		require.Regexp(t, "ok +"+check+" +reached: "+host, out)
	}
	for _, want := range []string{"GET /v1/models", "GET /agents/status"} {
		_, ok := seen.Load(want)
		require.True(t, ok, want)
	}
	out = look("hunter2")
	for _, want := range []string{
		"problem  models       agents.a.model.baseURL, model gpt-x: " + host + " answered 401 Unauthorized\n", "-> correct agents.a.model.apiKey",
		"agents.b.model.baseURL, model c-x", "-> correct agents.b.model.apiKey", "-> correct memory.embedder.apiKey", "-> correct agents.a.remoteAgents.r.headers",
		"problems: 4",
	} {
		require.Contains(t, out, want)
	}
}

func TestDoctorOnADaemonsClock(t *testing.T) {
	url := clitest.Ready(t, 200, api.Readiness{Ready: true, Durability: "fsync", Backend: "jetstream"})
	for apart, want := range map[time.Duration]doctor.Health{
		500 * time.Millisecond: doctor.Healthy, -15 * time.Second: doctor.Warning, 15 * time.Second: doctor.Warning,
		time.Hour: doctor.Problem, -time.Hour: doctor.Problem,
	} {
		out, err := doctorText(t, t.Context(), func() time.Time { return time.Now().Add(apart) }, "--server", url, "--json")
		require.Equal(t, want == doctor.Problem, errors.Is(err, errProblems), "%s: %v", apart, err)
		var d struct{ Checks []doctor.Check }
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		last := d.Checks[len(d.Checks)-1]
		require.Equal(t, doctor.CheckClock, last.ID)
		require.Equal(t, want, last.Status, apart)
		if want != doctor.Healthy {
			require.Contains(t, last.Advice, "NTP")
		}
	}
}

// What was interrupted is no success.
func TestDoctorInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := doctorText(t, ctx, time.Now, "--server", clitest.Ready(t, 200, api.Readiness{}))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, flags.ExitCode(err))
}

func TestDoctorOnAFolderThatCanNotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	out, err := doctorText(t, t.Context(), time.Now, "--data-dir", filepath.Join(file, "data"))
	require.Equal(t, 2, flags.ExitCode(err))
	require.Contains(t, out, "problem  folder")
	require.Contains(t, out, file)
}

func TestDoctorOnReplicasOfOneServer(t *testing.T) {
	t.Setenv("HELIX_NATS_REPLICAS", "3")
	out, err := doctorText(t, t.Context(), time.Now, "--data-dir", filepath.Join(t.TempDir(), "data"))
	require.ErrorIs(t, err, errProblems)
	require.Contains(t, out, "nats.replicas")
}

// A folder that can't be read is not taken for one that a daemon uses.
func TestDoctorOnADamagedFolder(t *testing.T) {
	dir := clitest.Stored(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jetstream", "format"), []byte("{"), 0o600))
	out, err := doctorText(t, t.Context(), time.Now, "--data-dir", dir)
	require.Equal(t, 2, flags.ExitCode(err))
	require.Contains(t, out, "problem  folder")
	require.Contains(t, out, "format is damaged")
	require.NotContains(t, out, "in use")
	require.NotContains(t, out, "chown")
}

// A folder whose data a cluster has is in nobody's use, whatever the file says it is for.
func TestDoctorOnAFolderThatHasMoved(t *testing.T) {
	dir := clitest.Stored(t, nil)
	require.NoError(t, embed.SetMoved(filepath.Join(dir, "jetstream"), []byte("cluster c has it since yesterday\n{}")))
	for range 2 {
		out, err := doctorText(t, t.Context(), time.Now, "--data-dir", dir)
		require.ErrorIs(t, err, errProblems)
		require.Contains(t, out, "problem  folder")
		require.Contains(t, out, "another deployment has the data of this folder: cluster c has it since yesterday")
		require.Contains(t, out, "-> use the configuration of that deployment")
		require.NotContains(t, out, "no daemon uses it")
		t.Setenv("HELIX_NATS_CLUSTER_LISTEN", "127.0.0.1:7000")
		t.Setenv("HELIX_NATS_CLUSTER_ROUTES", "nats://127.0.0.1:7001")
	}
}

// Alone it would wait for the others.
func TestDoctorOnAClusterNodeThatIsStopped(t *testing.T) {
	dir := clitest.Stored(t, nil)
	t.Setenv("HELIX_NATS_CLUSTER_LISTEN", "127.0.0.1:7000")
	t.Setenv("HELIX_NATS_CLUSTER_ROUTES", "nats://127.0.0.1:7001")
	_, err := doctorText(t, t.Context(), time.Now, "--data-dir", dir)
	require.Equal(t, 2, flags.ExitCode(err))
	require.ErrorContains(t, err, "start helixd serve, then look again")
}

// TestDoctorOnWhatAgentsNeed: a model, a tool or a command that is not there is
// a problem that names its setting, and no secret.
func TestDoctorOnWhatAgentsNeed(t *testing.T) {
	up := httptest.NewServer(http.NotFoundHandler())
	defer up.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	host := strings.TrimPrefix(gone.URL, "http://")
	agent := func(address, program string) string {
		return fmt.Sprintf(`auth: {tokens: [{token: hunter2}]}
memory: {embedder: {provider: openai, name: vec-x, baseURL: "%[1]s/v1"}}
agents:
  a:
    model: {provider: openai, name: gpt-x, apiKey: hunter2, baseURL: "%[1]s/v1?key=hunter2"}
    tools: {look: {description: x, http: {url: "%[1]s/look?key=hunter2"}}}
    mcp: [{name: m, command: [%[2]s]}, {name: n, url: "%[1]s/mcp"}]
    remoteAgents: {r: {description: x, url: "%[1]s/agents", agentType: b}}
`, address, program)
	}
	dir := filepath.Join(t.TempDir(), "data")
	out, err := doctorText(t, t.Context(), time.Now, "--config", clitest.Config(t, agent(up.URL, "sh")), "--data-dir", dir)
	require.NoError(t, err, out)
	at := strings.TrimPrefix(up.URL, "http://")
	for _, want := range []string{
		"ok       models       reached: " + at, "ok       tools        reached: " + at, "ok       mcp          reached: " + at + ", sh",
		"ok       remoteAgents reached: " + at, "ok       embedder     reached: " + at,
	} {
		require.Contains(t, out, want)
	}

	config := clitest.Config(t, agent(gone.URL, "no-such-program"))
	out, err = doctorText(t, t.Context(), time.Now, "--config", config, "--data-dir", dir)
	require.ErrorIs(t, err, errProblems)
	for _, want := range []string{
		"problem  models       agents.a.model.baseURL, model gpt-x: dial " + host + ": connection refused\n",
		"-> correct agents.a.model.baseURL, or start the server",
		"problem  tools        agents.a.tools.look.http.url: dial " + host + ": connection refused\n",
		"problem  mcp          agents.a.mcp[0].command: there is no program no-such-program\n",
		"problem  mcp          agents.a.mcp[1].url: dial " + host + ": connection refused\n",
		"problem  remoteAgents agents.a.remoteAgents.r.url: dial " + host + ": connection refused\n",
		"problem  embedder     memory.embedder.baseURL, model vec-x: dial " + host + ": connection refused\n",
		"problems: 6",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "hunter2")

	out, err = doctorText(t, t.Context(), time.Now, "--config", config, "--config-only")
	require.NoError(t, err, "another machine may reach it")
	require.Contains(t, out, "warning  models       agents.a.model.baseURL")
}

// TestDoctorOnAConfiguration: all errors are reported at once with their places, and
// nothing is started.
func TestDoctorOnAConfiguration(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		code int
		want []string
	}{
		"good": {"auth: {tokens: [{token: hunter2}]}\n", 0, []string{"ok       config       FILE", "ok       readModels   ", "problems: 0"}},
		"problems": {
			"lissten: x\nauth: {tokens: [{token: env:NOT_SET}]}\nagents:\n  a: {model: {provider: openai, name: m, apiKey: file:missing.key}, maxSteps: 0}\n" +
				"tracing: {headers: {Authorization: \"Bearer hunter2\\n\"}, sampleRatio: 2}\n", 1,
			[]string{
				"FILE:4: lissten: unknown key", "FILE:5: auth.tokens[0].token: environment variable NOT_SET is not set",
				"FILE:7: agents.a.model.apiKey: cannot read file missing.key", "FILE:7: agents.a.maxSteps: must be at least 1",
				"FILE:8: tracing.headers.Authorization: must not contain control characters", "FILE:8: tracing.sampleRatio: must be from 0 to 1", "problems: 6",
			},
		},
		"nobody": {"", 0, []string{"warning  config       FILE accepts no caller"}},
		"tickets": {
			"auth: {tokens: [{token: hunter2}]}\nnats: {name: a, replicas: 3, cluster: {listen: '127.0.0.1:6222', name: c, routes: ['nats://127.0.0.1:6222', 'nats://127.0.0.1:6223', 'nats://127.0.0.1:6224']}}\n", 0,
			[]string{"warning  config       auth.ticketKey is not set"},
		},
		"read models": {
			"auth: {tokens: [{token: hunter2}]}\nreadModels: {file: /dev/null/x/y.db}\n", 1,
			[]string{"problem  readModels   ", "or change readModels.file"},
		},
		"no collector": {
			"auth: {tokens: [{token: hunter2}]}\ntracing: {endpoint: \"http://me:hunter2@127.0.0.1:1\", headers: {Authorization: hunter2}}\n", 0,
			[]string{"warning  tracing      http://xxxxx@127.0.0.1:1 can't be reached: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := clitest.Config(t, tt.text)
			out, err := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only")
			code := 0
			if err != nil {
				code = flags.ExitCode(err)
			}
			require.Equal(t, tt.code, code, "%v\n%s", err, out)
			for _, want := range tt.want {
				require.Contains(t, out, strings.ReplaceAll(want, "FILE", path))
			}
			require.NotContains(t, out, "hunter2")
			require.NoFileExists(t, filepath.Join(filepath.Dir(path), "data"))
		})
	}
}

func TestDoctorOnACollector(t *testing.T) {
	for status, want := range map[int]string{200: "ok       tracing      ", 401: "correct tracing.headers", 404: "correct tracing.endpoint"} {
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() != "/base/v1/traces" || r.Header.Get("Authorization") != "hunter2" {
				status = 500
			}
			w.WriteHeader(status)
		}))
		t.Cleanup(collector.Close)
		path := clitest.Config(t, "auth: {tokens: [{token: t}]}\ntracing: {endpoint: \""+collector.URL+"/base?project=x\", headers: {Authorization: hunter2}}\n")
		out, err := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only", "--json")
		require.Equal(t, status == 401, errors.Is(err, errProblems), out)
		out, _ = doctorText(t, t.Context(), time.Now, "--config", path, "--config-only")
		require.Contains(t, out, want)
		require.NotContains(t, out, "hunter2")
	}
}

func TestDoctorOnADaemonsReadModels(t *testing.T) {
	r := api.Readiness{Ready: true, Durability: "fsync", Backend: "jetstream"}
	for want, fresh := range map[string]*readmodel.Fresh{
		"": nil,
		"ok       listings     listings are at the log's end":                                             {Current: true},
		"ok       listings     listings are about 7 records behind the log":                               {Lag: 7},
		"warning  listings     the read models are being rebuilt":                                         {Rebuilding: true},
		"warning  listings     records that could not be used: 2\n                      -> helixd parked": {Current: true, Parked: 2},
		"warning  listings     they do not get on":                                                        {Lag: 1, Problem: "they do not get on"},
	} {
		r.ReadModels = fresh
		out, err := doctorText(t, t.Context(), time.Now, "--server", clitest.Ready(t, 200, r))
		require.NoError(t, err)
		require.Contains(t, out, want)
		require.Equal(t, want != "", strings.Contains(out, "listings"))
	}
}

// TestDoctorOnWorkspaces: what does not confine commands is said.
func TestDoctorOnWorkspaces(t *testing.T) {
	const agent = "agents:\n  coder:\n    model: {provider: scripted, script: [{text: x}]}\n    workspace: {provider: local, capabilities: [fs, shell]%s}\n"
	text := func(more string) string {
		path := filepath.Join(t.TempDir(), "helix.yaml")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "auth: {allowUnauthenticated: true}\n"+agent, more), 0o600))
		out, _ := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only")
		return out
	}
	require.Contains(t, text(""), " workspaces ")
	p, err := triedWorkspaces(config.Default().Workspaces.Local)
	require.NoError(t, err)
	if p.ShellProblem() != nil {
		t.Skip("there is no shell here:", p.ShellProblem())
	}
	for _, gap := range p.Gaps() {
		require.Contains(t, text(""), "warning  workspaces   "+gap)
	}
	if len(p.Gaps()) == 0 {
		require.Contains(t, text(""), "ok       workspaces   commands have no network")
	}
	require.Contains(t, text(", network: host"), "warning  workspaces   commands of the agent coder reach the machine's network")
}

// The help lists the ids of all checks, which are constants here and in the package that
// looks at deployments.
func TestHelpListsTheIDs(t *testing.T) {
	_, text, found := strings.Cut(Command{}.Help(), "The ids are stable: ")
	require.True(t, found)
	text, _, _ = strings.Cut(text, ".")
	var ids []string
	for _, dir := range []string{".", "../../../../eventlog/jetstream/doctor"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range regexp.MustCompile(`(?m)^\t[Cc]heck\w+ += "(\w+)"`).FindAllSubmatch(source, -1) {
				ids = append(ids, string(match[1]))
			}
		}
	}
	ids = append(ids, "quotas") // of a daemon's readiness
	require.ElementsMatch(t, ids, strings.Split(text, ", "))
}
