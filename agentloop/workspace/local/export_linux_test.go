package local

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// MakePlain has commands run as where the kernel allows no namespaces.
func MakePlain(t *testing.T, p *Provider) {
	p.isolated = false
	require.NoError(t, p.tryCommand(false))
}

// SettleAtOnce has snapshots rely on the stamps of files that have only just
// changed.
func SettleAtOnce(t *testing.T) {
	was := settledFor
	settledFor = 0
	t.Cleanup(func() { settledFor = was })
}

// Root reports whether this process is root, and there are others.
func Root() bool { return os.Geteuid() == 0 && mapped("uid_map", nobody) && mapped("gid_map", nobody) }
