package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
)

func clerk() agentloop.Agent {
	return agentloop.Agent{
		Name: "clerk", Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "look"}}}, {Text: "Done.", Usage: fact.TokenUsage{Prompt: 1000, Completion: 100}}}, nil),
		Tools: []agentloop.Tool{{Name: "look", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return 1, nil }}},
	}
}

// talk makes sessions of the clerk's in a log.
func talk(t *testing.T, log eventlog.Log, n int) {
	t.Helper()
	loop, err := engine.New(log, []agentloop.Agent{clerk()}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	for i := range n {
		run, err := loop.Execute(t.Context(), engine.StartRequest{
			SessionID: fmt.Sprint("s-", i), AgentType: "clerk", UserID: fmt.Sprint("user-", i%2), Messages: []agentloop.Input{{Content: "Hi."}},
		})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
	}
}

// A daemon and a backup of its log give the same file.
func TestCohortsOfADaemonAndOfABackup(t *testing.T) {
	log, run := clitest.Serve[Commands](t, clerk())
	talk(t, log, 6)
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "c.ndjson"), filepath.Join(dir, "rules.yaml")
	out, err := run("", "lab", "cohort", "create", file, "--json")
	require.NoError(t, err)
	var head cohort.Header
	require.NoError(t, json.Unmarshal([]byte(out), &head))
	require.Equal(t, 6, head.Sessions)

	saved := filepath.Join(dir, "backup")
	b, err := os.Create(saved)
	require.NoError(t, err)
	_, err = backup.Take(t.Context(), log.(*memory.Log), snapshot.New(log, nil), b, backup.Options{})
	require.NoError(t, err)
	require.NoError(t, b.Close())
	again := filepath.Join(dir, "again.ndjson")
	_, err = run("", "lab", "cohort", "create", again, "--backup", saved)
	require.NoError(t, err)
	require.Equal(t, head.Hash, read(t, again).Header.Hash)

	require.NoError(t, os.WriteFile(rules, []byte("users: true\n"), 0o600))
	out, err = run("", "lab", "cohort", "create", file, "--limit", "4", "--seed", "3", "--tool", "look", "--since", "1h", "--redact", rules)
	require.NoError(t, err)
	require.Regexp(t, `: 4 sessions of 6 that match, \d+ records, 2 values redacted\nhash [0-9a-f]{64}\n$`, out)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(text), "user-0")
	require.NotContains(t, string(text), "user-1")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 4, "no temporary file stays")

	prices := filepath.Join(dir, "prices.yaml")
	require.NoError(t, os.WriteFile(prices, []byte("prices: {scripted: {input: 2, output: 10}}\n"), 0o600))
	costly := func(least string) error {
		_, err := run("", "lab", "cohort", "create", filepath.Join(dir, "costly.ndjson"), "--min-cost", least, "--prices", prices)
		return err
	}
	require.NoError(t, costly("0.003"))
	require.ErrorContains(t, costly("0.0031"), "no session")

	for _, flag := range [][]string{{"--since", "soon"}, {"--limit", "-1"}, {"--min-cost", "1"}, {"--min-cost", "-1", "--prices", prices}, {"--prices", prices}} {
		_, err = run("", append([]string{"lab", "cohort", "create", file}, flag...)...)
		require.Error(t, err)
	}
	_, err = run("", "lab", "cohort", "create", file, "--agent", "nobody")
	require.ErrorContains(t, err, "no session")
	require.Len(t, read(t, file).Sessions, 4, "the file is as it was")
}

func read(t *testing.T, file string) *cohort.Cohort {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	c, err := cohort.Read(f)
	require.NoError(t, err)
	return c
}
