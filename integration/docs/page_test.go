package docs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPagesAreParsed(t *testing.T) {
	page, err := Parse("p.md", "# A page\nText\n```yaml a.yaml\nx: 1\n```\n<!-- not run: it is slow -->\n```sh\nfalse\n```\n\n```console\n$ a\nout\nmore\n$ b\n```\n")
	require.NoError(t, err)
	require.Len(t, page.Blocks, 3)
	assert.Equal(t, "a.yaml", page.Blocks[0].File)
	assert.Equal(t, "A page", page.Blocks[0].Heading)
	assert.Equal(t, "x: 1\n", page.Blocks[0].Text)
	assert.Equal(t, "it is slow", page.Blocks[1].NotRun)
	assert.Empty(t, page.Blocks[1].Commands())
	assert.Equal(t, []Command{
		{Line: 12, Text: "a", Output: "out\nmore\n", Shown: true}, {Line: 15, Text: "b", Shown: true},
	}, page.Blocks[2].Commands())
	_, err = Parse("p.md", "```sh\n")
	require.ErrorContains(t, err, "p.md:1")
}

func TestOutputsMatch(t *testing.T) {
	for _, row := range []struct {
		shown, output string
		same          bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"", "something", false},
		{"{\"id\":1,…\n", "{\"id\":1,\"more\":[2]}\n", true},
		{"run-01M7Z7CWSS95WDVEPDTWH3V322\n", "run-01M80M75E2Z73178ZJ2XW71D6P\n", true},
		{"at 1795250021558\n", "at 1795250021559\n", true},
		{"in 3ms\n", "in 17.5s\n", true},
		{"text\n", "bash: line 3: 17 Killed                  helixd\ntext\n", true},
	} {
		assert.Equal(t, row.same, Matches(row.shown, row.output), "%q %q", row.shown, row.output)
	}
}

// A page fails with its first command that fails, or prints something else.
func TestPagesFail(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"good":           {"```txt f\nhello\n```\n```sh\nx=$(cat f)\n```\n```console\n$ echo $x\nhello\n```\n", ""},
		"sh fails":       {"```sh\nfalse\ntouch went-on\n```\n", "p.md:2: the command failed: exit code 1"},
		"console fails":  {"```console\n$ exit 3\n```\n", "p.md:2"},
		"stays":          {"<!-- in another terminal -->\n```console\n$ echo up; sleep 100\nup\n```\n```console\n$ jobs | wc -l\n1\n```\n", ""},
		"another output": {"```console\n$ echo a\nb\n```\n", "printed\n    a\nnot\n    b"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			shell, err := StartShell(t.Context(), dir, os.Environ(), false)
			require.NoError(t, err)
			defer shell.Close()
			page, err := Parse("p.md", row.text)
			require.NoError(t, err)
			err = Run(page, dir, shell)
			if row.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.want)
			}
			require.NoFileExists(t, filepath.Join(dir, "went-on"))
		})
	}
}
