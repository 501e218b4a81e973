package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
)

// TestCommandsDocs: the page of the documentation lists the commands of the help.
func TestCommandsDocs(t *testing.T) {
	k, err := newParser(new(cli))
	require.NoError(t, err)
	var rows [][]string
	for _, group := range groups {
		for _, command := range k.Model.Leaves(true) {
			if command.ClosestGroup().Key == group.Key {
				rows = append(rows, []string{"`" + command.Path() + "`", command.Help})
			}
		}
	}
	require.Len(t, rows, len(examples))
	const path = "../../docs/reference/commands.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := docs.Fill(string(page), "commands", docs.Table([]string{"command", "what it does"}, rows))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./cmd/helixd -run TestCommandsDocs -update")
}
