package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

func open(t *testing.T, o local.Options) *local.Provider {
	t.Helper()
	p, err := local.New(t.TempDir(), &o)
	require.NoError(t, err)
	return p
}

func TestContract(t *testing.T) {
	workspacetest.Run(t, func(t *testing.T) workspace.Provider { return open(t, local.Options{MaxBytes: 1 << 20}) })
}
