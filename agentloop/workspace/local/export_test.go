package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
)

// Use keeps removals of a workspace waiting until release is called; gone is
// closed when one has begun.
func Use(t *testing.T, w workspace.Workspace) (gone <-chan struct{}, release func()) {
	s := w.(*handle).space
	release, err := s.use(t.Context())
	require.NoError(t, err)
	return s.gone.Done(), release
}

// TakeOver keeps all others waiting until release is called.
func TakeOver(w workspace.Workspace) (release func()) {
	s := w.(*handle).space
	s.mu.Lock()
	return s.mu.Unlock
}
