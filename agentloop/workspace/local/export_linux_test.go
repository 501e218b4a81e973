package local

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// MakePlain has commands run as where the kernel allows no namespaces.
func MakePlain(t *testing.T, p *Provider) {
	p.isolated = false
	require.NoError(t, p.tryCommand(false))
}
