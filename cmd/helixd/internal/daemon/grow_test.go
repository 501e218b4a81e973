package daemon

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/integration/testkit"
)

// TestANodeHasTheLogGrow: a node that starts with more partitions grows the log while
// another one serves. Both continue, and each lists what the other one received since.
func TestANodeHasTheLogGrow(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	url, _ := clitest.NATS(t)
	node := func(partitions int) *Daemon {
		path := filepath.Join(t.TempDir(), "helix.yaml")
		text := "listen: 127.0.0.1:0\n" + fmt.Sprintf(agentsFile, "t0ken", "a") + fmt.Sprintf("nats: {url: %q, partitions: %d}\n", url, partitions)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1), "--data-dir", t.TempDir())
	}
	begin := func(d *Daemon, session string) {
		code, answer := ask(t, http.MethodPost, d.URL+"/start", "t0ken", "", fmt.Sprintf(`{"sessionId":%q,"agentType":"a","message":"go"}`, session))
		require.Equal(t, 200, code, answer)
	}
	partitions := func(d *Daemon, n int) bool {
		code, answer := ask(t, http.MethodGet, d.URL+"/readyz", "t0ken", "", "")
		return code == 200 && strings.Contains(answer, fmt.Sprintf(`"partitions":%d`, n))
	}
	old := node(2)
	begin(old, "before")
	require.True(t, partitions(old, 2))
	fresh := node(5)
	require.True(t, partitions(fresh, 5))
	require.Eventually(t, func() bool { return partitions(old, 5) }, 10*time.Second, 10*time.Millisecond)
	for i := range 10 {
		begin([]*Daemon{old, fresh}[i%2], fmt.Sprint("after", i))
	}
	for _, d := range []*Daemon{old, fresh} {
		require.Eventually(t, func() bool {
			code, answer := ask(t, http.MethodGet, d.URL+"/sessions", "t0ken", "", "")
			return code == 200 && strings.Count(answer, `"sessionId":"`) == 11
		}, time.Minute, 50*time.Millisecond)
		code, answer := ask(t, http.MethodGet, d.URL+"/sessions/before/state", "t0ken", "", "")
		require.Equal(t, 200, code, answer)
	}
}

// TestAReloadHasTheLogGrow: a larger nats.partitions takes effect with a reload. Where NATS
// clients may place sessions, the reload is refused and nothing changes.
func TestAReloadHasTheLogGrow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	path := filepath.Join(t.TempDir(), "helix.yaml")
	write := func(nats string) {
		text := "listen: 127.0.0.1:0\ndurability: interval=100ms\n" + fmt.Sprintf(agentsFile, "t0ken", "a") + nats
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	reload := func(d *Daemon, want int) (answer string) {
		code, answer := ask(t, http.MethodPost, d.URL+"/admin/reload", "t0ken", "", "{}")
		require.Equal(t, want, code, answer)
		return answer
	}
	begin := func(d *Daemon, session string) {
		code, answer := ask(t, http.MethodPost, d.URL+"/start", "t0ken", "", fmt.Sprintf(`{"sessionId":%q,"agentType":"a","message":"go"}`, session))
		require.Equal(t, 200, code, answer)
	}
	partitions := func(d *Daemon, n int) bool {
		code, answer := ask(t, http.MethodGet, d.URL+"/readyz", "t0ken", "", "")
		return code == 200 && strings.Contains(answer, fmt.Sprintf(`"partitions":%d`, n))
	}
	write("nats: {partitions: 2}\n")
	d := serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1), "--data-dir", t.TempDir())
	begin(d, "before")
	require.True(t, partitions(d, 2))
	write("nats: {partitions: 5}\n")
	require.Contains(t, reload(d, 200), `"needsRestart":[]`)
	require.Eventually(t, func() bool { return partitions(d, 5) }, time.Minute, 10*time.Millisecond)
	for i := range 10 {
		begin(d, fmt.Sprint("after", i))
	}
	require.Eventually(t, func() bool {
		code, answer := ask(t, http.MethodGet, d.URL+"/sessions", "t0ken", "", "")
		return code == 200 && strings.Count(answer, `"sessionId":"`) == 11
	}, time.Minute, 50*time.Millisecond)
	write("nats: {partitions: 3}\n")
	require.Contains(t, reload(d, 200), `"nats.partitions"`, "a log can't shrink, which a restart refuses")
	require.True(t, partitions(d, 5))

	write("nats: {partitions: 2, listen: '127.0.0.1:0', user: u, password: p}\n")
	open := serveFile(t, path, &logBuffer{}, make(chan os.Signal, 1), "--data-dir", t.TempDir())
	write("nats: {partitions: 5, listen: '127.0.0.1:0', user: u, password: p}\n")
	require.Contains(t, reload(open, 409), "start a node once without nats.user")
	require.True(t, partitions(open, 2))
}

// TestANodeDoesNotReplaceItself: a node of a lost one's name would vote with an empty data folder, so its
// server does not run.
func TestANodeDoesNotReplaceItself(t *testing.T) {
	c := &config.Config{DataDir: t.TempDir()}
	c.NATS.Name, c.NATS.Cluster.Listen = "n1", "127.0.0.1:0"
	_, _, err := (&Daemon{join: true, replaces: "n1"}).connect(t.Context(), c, false, nil, nil, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "--replace n1: this is n1 itself")
	require.NoDirExists(t, settings.ServerFolder(c.DataDir))
}
