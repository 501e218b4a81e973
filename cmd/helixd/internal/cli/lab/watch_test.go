package lab

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// A change of the candidate is judged at once, and the metrics say how.
func TestLabWatch(t *testing.T) {
	dir := t.TempDir()
	_, url := recordShop(t, dir, 2)
	file := filepath.Join(dir, "lab.yaml")
	require.NoError(t, os.WriteFile(file, []byte("cohort: c.ndjson\ncandidate: next.yaml\nmodels: script\n"), 0o600))
	next := filepath.Join(dir, "next.yaml")
	change := func(text string) { // at once, or half a file would be tried
		t.Helper()
		require.NoError(t, os.WriteFile(next+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(next+".new", next))
	}
	change(shop(url, ""))

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, stdout := io.Pipe()
	errs, stderr := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := clitest.RunIn[Commands](t, &flags.Process{Ctx: ctx, Stdout: stdout, Stderr: stderr, Log: slog.New(slog.DiscardHandler)},
			"lab", "watch", file, "--every", "10ms", "--listen", "127.0.0.1:0")
		ended <- err
		stdout.Close()
		stderr.Close()
	}()
	notes := bufio.NewScanner(errs)
	require.True(t, notes.Scan())
	address := strings.TrimPrefix(notes.Text(), "metrics at ")
	told := make(chan string)
	go func() { // so that the command never waits for its reader
		defer close(told)
		for notes.Scan() {
			told <- notes.Text()
		}
	}()
	lines := bufio.NewScanner(out)
	until := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the command ended before it said %q", text)
	}
	metrics := func() string {
		t.Helper()
		answer, err := http.Get(address)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}

	until("0 regressions")
	change(strings.Replace(shop(url, ""), "id: 7", "id: 8", 1))
	until("2 regressions")
	require.Equal(t, "helixd: 2 regressions", <-told) // then the metrics are there
	text := metrics()
	require.Contains(t, text, `helixd_lab_sessions{verdict="regression"} 2`)
	require.Contains(t, text, `helixd_lab_sessions{verdict="same"} 0`)
	require.Contains(t, text, `helixd_lab_runs_total{outcome="passed"} 1`)
	require.Contains(t, text, `helixd_lab_runs_total{outcome="regressed"} 1`)

	change("agents: nonsense\n")
	require.Contains(t, <-told, "next.yaml:1: agents: must be a mapping")
	require.Contains(t, metrics(), `helixd_lab_runs_total{outcome="unjudged"} 1`)

	change(shop(url, ""))
	until("0 regressions")
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
	for range told {
	}
	http.DefaultClient.CloseIdleConnections()
}
