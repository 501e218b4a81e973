package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// An invalid command line gets three lines: what is wrong, the usage, and where there is
// more.
func TestMisused(t *testing.T) {
	for line, want := range map[string]string{
		"tail": `helixd: expected "<session>"
usage: helixd tail <session> [flags]
helixd tail --help shows more
`,
		"tial s": `helixd: unexpected argument tial, did you mean "tail"?
usage: helixd <command> [flags]
helixd --help shows more
`,
		"tail s --form 3": `helixd: unknown flag --form, did you mean "--from"?
usage: helixd tail <session> [flags]
helixd tail --help shows more
`,
		"memories": `helixd: expected one of "list", "search", "save", "forget", "erase", ...
usage: helixd memories <command> [flags]
helixd memories --help shows more
`,
		"rollback s": `helixd: rollback: name the point to go back to: SESSION@N, --to=N or --checkpoint=ID
usage: helixd rollback <session> [flags]
helixd rollback --help shows more
`,
		"retain": `helixd: retain: --purge-older-than, --drop-older-than or --max-bytes is needed
usage: helixd retain [flags]
helixd retain --help shows more
`,
		"replay s --live --sse": `helixd: replay: --live can't be combined with --verify, --to or --sse
usage: helixd replay <session> [flags]
helixd replay --help shows more
`,
	} {
		k, err := newParser(new(cli))
		require.NoError(t, err)
		_, err = k.Parse(strings.Fields(line))
		require.Error(t, err, line)
		var said bytes.Buffer
		require.Equal(t, 2, misused(&said, err, nil))
		require.Equal(t, want, said.String(), line)
	}
}

// What the command or the daemon finds wrong with a command line gets the same three lines.
func TestMisusedWhenRun(t *testing.T) {
	k, err := newParser(new(cli))
	require.NoError(t, err)
	parsed, err := k.Parse([]string{"state", "s@1..2"})
	require.NoError(t, err)
	require.NoError(t, checkNames(parsed))
	err = parsed.Run(&flags.Process{Ctx: t.Context()})
	require.Equal(t, 2, flags.ExitCode(err))
	var said bytes.Buffer
	require.Equal(t, 2, misused(&said, err, parsed))
	require.Equal(t, `helixd: s@1..2 is a stretch of a session; a point is needed, SESSION@N
usage: helixd state <session> [flags]
helixd state --help shows more
`, said.String())
	parsed, err = k.Parse([]string{"records", ""})
	require.NoError(t, err)
	require.EqualError(t, checkNames(parsed), "<session> must not be empty")
}
