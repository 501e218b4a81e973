package control

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
)

// A session is forked and taken back, and each command says what it has done.
func TestForkAndRollback(t *testing.T) {
	log, helixd := clitest.Serve[Commands](t)
	_, err := helixd(clitest.ChunkLines("s", 5), "append", "s", "--end")
	require.NoError(t, err)

	out, err := helixd("", "fork", "s", "--at", "3", "--as", "then")
	require.NoError(t, err)
	require.Equal(t, "then is what s was at 3\n", out)
	out, err = helixd("", "fork", "s", "--as", "now", "--json")
	require.NoError(t, err)
	var forked api.Forked
	require.NoError(t, json.Unmarshal([]byte(out), &forked))
	require.Equal(t, "now", forked.SessionID)
	require.EqualValues(t, 6, forked.FromSequence, "the head")
	from := clitest.Folded(t, log, "then").ForkedFrom
	require.Equal(t, &projector.Fork{SessionID: "s", Sequence: 3, Record: from.Record}, from)

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"the beginning":        {[]string{"rollback", "s", "--to", "0", "--yes"}, "there is nothing up to sequence 0"},
		"no place":             {[]string{"rollback", "s", "--yes"}, "name the point to go back to: SESSION@N, --to=N or --checkpoint=ID"},
		"two places":           {[]string{"rollback", "s", "--to", "1", "--checkpoint", "x", "--yes"}, "can't be used together"},
		"no such checkpoint":   {[]string{"rollback", "s", "--checkpoint", "x", "--yes"}, "(NOT_FOUND)"},
		"a place ahead":        {[]string{"rollback", "s", "--to", "99", "--yes"}, "(CURSOR_AHEAD)"},
		"nobody to ask":        {[]string{"rollback", "s", "--to", "3"}, "the standard input is no terminal to ask on: nothing was changed"},
		"a fork of nothing":    {[]string{"fork", "s", "--at", "0"}, "there is nothing up to sequence 0"},
		"a fork of two places": {[]string{"fork", "s", "--at", "1", "--message-index", "0"}, "can't be used together"},
		"a fork over another":  {[]string{"fork", "s", "--at", "2", "--as", "then"}, "(SESSION_EXISTS)"},
		"a fork of nobody":     {[]string{"fork", "nobody"}, "(NOT_FOUND)"},
	} {
		_, err := helixd("", c.args...)
		require.ErrorContains(t, err, c.want, name)
	}
	require.Len(t, payloads(t, log, "s"), 6, "nothing has changed")

	out, err = helixd("", "rollback", "s", "--to", "3", "--yes")
	require.NoError(t, err)
	require.Equal(t, "s is back at 3: what came after it, up to 6, is discarded\n", out)
	head := clitest.Folded(t, log, "s").Head
	out, err = helixd("", "rollback", "s", "--to", "3", "--yes", "--json")
	require.NoError(t, err)
	var back api.RolledBack
	require.NoError(t, json.Unmarshal([]byte(out), &back))
	require.Equal(t, api.RolledBack{SessionID: "s", RolledBack: true, AfterSequence: 3, AtSequence: head}, back)
}

// If a person can be asked, the question says what there is to lose.
func TestRollbackAsks(t *testing.T) {
	cmd := rollbackCmd{DaemonFlags: source.DaemonFlags{Server: "http://127.0.0.1:1"}}
	p := &flags.Process{Ctx: t.Context(), Stderr: new(bytes.Buffer)}
	require.Equal(t, "Take s\ufffd[2J back to sequence 3?", cmd.question(p, "s\x1b[2J", client.Target{Sequence: 3}), "a daemon that says nothing")
	for said, want := range map[string]bool{"y\n": true, "Yes \n": true, "yes": true, "n\n": false, "\n": false, "": false, "yellow\n": false} {
		var asked bytes.Buffer
		p := &flags.Process{Ctx: t.Context(), Stdin: strings.NewReader(said), Stderr: &asked}
		require.Equal(t, want, p.Confirm("Sure?"), "%q", said)
		require.Equal(t, "Sure? [y/N] ", asked.String())
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, (&flags.Process{Ctx: ctx, Stdin: r, Stderr: new(bytes.Buffer)}).Confirm("Sure?"), "stopped while it waits")
}
