package lab

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

// Machines that run the same lab have separate logs and one daemon.
func TestALabOfTwoMachinesOnADaemon(t *testing.T) {
	log := memory.New()
	loop, err := engine.New(log, nil, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	api, err := httpapi.New(httpapi.Options{Log: log, Loop: loop, Auth: auth.BearerTokens([]auth.Token{
		{Token: "all", Operations: []string{"*"}, Sessions: []string{"*"}}, {Token: "reads", Operations: []string{"records", "sessions"}, Sessions: []string{"*"}},
	})})
	require.NoError(t, err)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	recordShop(t, dir, 1)
	const lost = "candidate: helix.yaml\nassert: [{contains: [lost]}]\n"

	file := filepath.Join(dir, "report.json")
	_, code, text := try(t, dir, lost, "--dir", filepath.Join(dir, "0"), "--server", srv.URL, "--token", "reads", "--report", file)
	require.Equal(t, 2, code)
	require.Contains(t, text, "on the daemon")
	_, err = os.Stat(file)
	require.NoError(t, err, "what was judged is reported")
	for _, machine := range []string{"1", "2", "1"} {
		r, code, text := try(t, dir, lost, "--dir", filepath.Join(dir, machine), "--server", srv.URL, "--token", "all")
		require.Equal(t, 1, code, text)
		require.Equal(t, result.Regression, r.Results[0].Verdict)
	}
	sessions := 0
	for _, err := range log.Sessions(t.Context()) {
		require.NoError(t, err)
		sessions++
	}
	require.Equal(t, 6, sessions, "three labs, and a lane of each")
}
