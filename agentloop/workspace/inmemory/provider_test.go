package inmemory_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

func TestContract(t *testing.T) {
	workspacetest.Run(t, func(*testing.T) workspace.Provider {
		return inmemory.New(&inmemory.Options{MaxBytes: 1 << 20})
	})
}

func TestFilesEndWithTheProcess(t *testing.T) {
	_, ref, err := inmemory.New(nil).Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	after := inmemory.New(nil)
	workspacetest.Open(t, after, workspacetest.Session)
	_, err = after.Resolve(t.Context(), workspacetest.Session, ref)
	require.ErrorIs(t, err, workspace.ErrGone, "also where the session has another one already")
}
