package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// TestManPages: each command has a page, which says what its help says, and which groff
// formats without a warning.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, manCmd{Out: dir}.Run(&flags.Process{}))
	k, err := newParser(new(cli))
	require.NoError(t, err)
	commands := k.Model.Leaves(true)
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.Len(t, files, len(commands)+1)
	for _, command := range commands {
		page, err := os.ReadFile(filepath.Join(dir, manName(command)+".1"))
		require.NoError(t, err)
		text := string(page)
		require.Contains(t, text, roff(strings.TrimSuffix(command.Help, ".")), command.Path())
		for _, f := range command.Flags {
			require.Contains(t, text, roffWord(f.String()), command.Path())
		}
		for _, example := range examples[command.Path()] {
			require.Contains(t, text, roff(example)+"\n", command.Path())
		}
		var out bytes.Buffer
		require.NoError(t, manCmd{Command: strings.Fields(command.Path())}.Run(&flags.Process{Stdout: &out}))
		require.Equal(t, text, out.String(), "the page that is printed")
	}
	main, err := os.ReadFile(filepath.Join(dir, "helixd.1"))
	require.NoError(t, err)
	for _, command := range commands {
		require.Contains(t, string(main), "\\fB"+roffWord(command.Path())+"\\fR\n")
	}
	require.Error(t, manCmd{Command: []string{"nothing"}}.Run(&flags.Process{}))

	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff")
	}
	out, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, files...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}

// TestRoff: no text is a command of roff.
func TestRoff(t *testing.T) {
	require.Equal(t, `\&.SH \(aqa\(aq \e \-\-b c`, roff(".SH 'a' \\ --b\nc"))
	require.Equal(t, `1\[u2026]2`, roff("1…2"))
	require.Equal(t, `\(dqa\(dq`, roffWord(`"a"`))
}
