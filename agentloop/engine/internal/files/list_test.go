package files

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/projector"
)

// silent is a provider that answers nothing.
type silent struct{ workspace.Provider }

func (silent) ID() string { return "silent" }

func (silent) Resolve(ctx context.Context, _ workspace.Session, _ json.RawMessage) (workspace.Workspace, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A provider that does not answer and a caller that does not wait are different errors.
func TestListOfASilentProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Files{Metrics: metrics.New(nil), Providers: map[string]workspace.Provider{"silent": silent{}}}
		w := &projector.Workspace{ProviderID: "silent", Ref: json.RawMessage(`{}`)}
		_, _, err := f.List(t.Context(), workspace.Session{}, w, ".")
		require.ErrorIs(t, err, agentloop.ErrWorkspaceTimeout)
		ctx, cancel := context.WithTimeout(t.Context(), workspaceTimeout/2)
		defer cancel()
		_, _, err = f.List(ctx, workspace.Session{}, w, ".")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, agentloop.ErrWorkspaceTimeout)
	})
}
