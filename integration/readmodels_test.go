package integration_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

const (
	completed = "/sessions?status=completed&limit=200"
	found     = "/search?q=memorable&limit=200"
)

// overview is what a daemon answers about all of its sessions once all is finished
// and in the rows.
func (d *daemon) overview(sessions int) map[string]any {
	d.t.Helper()
	all := map[string]any{}
	require.Eventually(d.t, func() bool {
		for _, path := range []string{completed, "/runs?limit=200", "/usage?by=model", found, "/parked"} {
			status, answer := d.get(path)
			if status != http.StatusOK || answer["current"] != true || path == completed && answer["total"] != float64(sessions) {
				return false
			}
			if strings.Contains(fmt.Sprint(answer), "streamStatus:active") { // its end follows the run's
				return false
			}
			all[path] = answer
		}
		return true
	}, time.Minute, 50*time.Millisecond)
	return all
}

// Kills, a damaged file, one that is removed while the daemon runs: what is
// said about all sessions is what the log says.
func TestReadModelsSurvive(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const sessions = 20
	dir := t.TempDir()
	file := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
dataDir: `+dir+`/data
durability: interval=1s
prices: {scripted: {input: 1, output: 2}}
agents:
  talker: {model: {provider: scripted, scriptDelay: 5ms, script: [{text: "`+strings.Repeat("something memorable is said ", 10)+`"}]}}
`), 0o600))
	d := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
	d.start()
	for i := range sessions {
		status, answer := d.post("/start", map[string]any{
			"sessionId": fmt.Sprintf("s%02d", i), "agentType": "talker", "message": "Speak!", "tags": []string{"talks"},
		})
		require.Equal(t, http.StatusOK, status, answer)
		if i == sessions/2 {
			d.kill() // while runs continue and rows are written
			d.start()
		}
	}
	want := d.overview(sessions)
	require.EqualValues(t, sessions, want[found].(map[string]any)["total"])
	path := filepath.Join(dir, "data", "readmodels.db")
	for name, harm := range map[string]func(){
		"killed":  func() {},
		"damaged": func() { require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("x", 1<<16)), 0o600)) },
		"removed": func() { require.NoError(t, os.Remove(path)) },
	} {
		d.kill()
		harm()
		d.start()
		require.Equal(t, want, d.overview(sessions), name)
	}
	require.NoError(t, os.Remove(path))
	require.Eventually(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	require.Equal(t, want, d.overview(sessions), "removed under a running daemon")

	d.kill()
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, "data"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "readmodels.db") {
			err = os.Remove(path)
		}
		return err
	}))
	d.env = []string{"HELIX_READ_MODELS_ENABLED=false"}
	d.start()
	status, answer := d.get("/sessions?status=completed")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, sessions, answer["total"], "without read models every session is folded")
	status, _ = d.get("/search?q=memorable")
	require.Equal(t, http.StatusNotImplemented, status)
	require.NoFileExists(t, path)
}
