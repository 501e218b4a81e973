package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files of help texts")

// helpOf is what a command line with --help prints.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	k, err := newParser(new(cli), kong.Writers(&out, &out), kong.Exit(func(int) { panic("exit") }))
	require.NoError(t, err)
	require.PanicsWithValue(t, "exit", func() { _, _ = k.Parse(append(args, "--help")) })
	return out.String()
}

// TestHelp compares all help texts with those in testdata/help.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	k, err := newParser(new(cli))
	require.NoError(t, err)
	all := map[string]string{"helixd": helpOf(t)}
	for _, command := range k.Model.Leaves(false) {
		require.NotNil(t, command.ClosestGroup(), "%s is listed nowhere", command.Path())
		all[strings.ReplaceAll(command.Path(), " ", "-")] = helpOf(t, strings.Fields(command.Path())...)
	}
	for name, text := range all {
		golden := filepath.Join("testdata", "help", name+".txt")
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
			require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err, "go test ./cmd/helixd -run TestHelp -update")
		require.Equal(t, string(want), text, "go test ./cmd/helixd -run TestHelp -update")
	}
	files, err := filepath.Glob("testdata/help/*.txt")
	require.NoError(t, err)
	require.Len(t, files, len(all), "one of a command that is no more")
}

// TestExamples: what help shows can be typed, and each command shows something.
func TestExamples(t *testing.T) {
	k, err := newParser(new(cli))
	require.NoError(t, err)
	for _, command := range k.Model.Leaves(false) {
		require.NotEmpty(t, examples[command.Path()], command.Path())
	}
	for name, lines := range examples {
		for _, line := range lines {
			require.True(t, strings.HasPrefix(line, "helixd "+name), line)
			k, err := newParser(new(cli))
			require.NoError(t, err)
			got, err := k.Parse(wordsOf(line)[1:])
			require.NoError(t, err, line)
			require.Equal(t, name, got.Selected().Path())
		}
	}
}

// wordsOf takes a line apart as a shell does, as far as examples have quotes.
func wordsOf(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
