package local

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
)

// MakePlain has commands run as where the kernel allows no namespaces.
func MakePlain(t *testing.T, p *Provider) {
	p.isolated, p.shell = false, nil
	require.NoError(t, p.tryCommand(false))
}

// RunWithTemp runs a command with that folder of the workspace for temporary
// files.
func RunWithTemp(ctx context.Context, p *Provider, s workspace.Session, temp, line string) (workspace.Outcome, error) {
	return p.run(ctx, "", probeTimeout, nil, job{Isolated: p.isolated, Line: line, Files: p.files(s), Dir: ".", Temp: temp})
}

// SettleAtOnce has snapshots rely on the stamps of files that have only just
// changed.
func SettleAtOnce(t *testing.T) {
	was := settledFor
	settledFor = 0
	t.Cleanup(func() { settledFor = was })
}

// LinkBy has forks link contents by f.
func LinkBy(t *testing.T, f func(from, to string) error) {
	was := link
	link = f
	t.Cleanup(func() { link = was })
}

// Root reports whether this process is root, and there are others.
func Root() bool { return os.Geteuid() == 0 && mapped("uid_map", nobody) && mapped("gid_map", nobody) }
