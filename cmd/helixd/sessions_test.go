package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// SESSION@N works in every command that shows or uses a point of a session. Any other command
// says that it takes the id alone.
func TestSessionsOfCommands(t *testing.T) {
	points := strings.Fields("state tail records replay diff compare fork rollback")
	k, err := newParser(new(cli))
	require.NoError(t, err)
	refused := 0
	for _, command := range k.Model.Leaves(true) {
		values := command.Positional
		for _, f := range command.Flags {
			values = append(values, f.Value)
		}
		for i, v := range values {
			if v.Tag.Type != "session" {
				if v.Name == "session" {
					require.Contains(t, points, command.Path(), "its sessions are points")
				}
				continue
			}
			line := strings.Fields(command.Path())
			for range min(i, len(command.Positional)) {
				line = append(line, "x")
			}
			if v.Flag != nil {
				line = append(line, "--"+v.Name)
			}
			for text, id := range map[string]string{"s@9": "s", "s@4..9": "s", "a@b@9": "a@b"} {
				_, err := k.Parse(append(line, text))
				var said bytes.Buffer
				require.Equal(t, 2, misused(&said, err, nil), "%s %s", line, text)
				require.Contains(t, said.String(), text+" is a point of a session; give its id alone: "+id+" (or "+text+"@, if that is the id)\nusage: helixd "+command.Path())
			}
			refused++
		}
	}
	require.NotZero(t, refused)
}

// An id that ends like a point is written with one more @.
func TestSessionsLikePoints(t *testing.T) {
	for line, want := range map[string]string{"approve s@9@": "s@9", "approve s@": "s", "approve s": "s", "approve a@b.c": "a@b.c"} {
		c := new(cli)
		k, err := newParser(c)
		require.NoError(t, err)
		_, err = k.Parse(strings.Fields(line))
		require.NoError(t, err)
		require.Equal(t, want, c.Talk.Approve.Session, line)
	}
	c := new(cli)
	k, err := newParser(c)
	require.NoError(t, err)
	_, err = k.Parse([]string{"verify", "s", "s@9@", "--nats", "nats://localhost"})
	require.NoError(t, err)
	require.Equal(t, []string{"s", "s@9"}, c.Operate.Verify.Sessions)
}

// A sequence is given once: as SESSION@N, or with a flag.
func TestSequenceGivenTwice(t *testing.T) {
	for _, line := range []string{
		"fork s@9 --at 3", "fork s@9 --checkpoint c", "fork s@9 --message-index 1", "rollback s@9 --to 3", "rollback s@9 --checkpoint c", "state s@9 --at 3",
		"tail s@9 --from 3", "records s@9 --to 3", "replay s@9 --from 3", "diff s@9 1..3",
	} {
		k, err := newParser(new(cli))
		require.NoError(t, err)
		var parsed *kong.Context
		if parsed, err = k.Parse(strings.Fields(line)); err == nil {
			err = parsed.Run(&flags.Process{Ctx: t.Context()})
			require.Equal(t, 2, flags.ExitCode(err), "%s: %v", line, err)
		}
		require.ErrorContains(t, err, "s@9 is a point of a session; give its id alone: s", line)
	}
}
