package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/projector"
)

// List returns the content of a folder of a session's workspace as it is now, with that of
// its folders. It is empty if the workspace was not opened yet, or is gone. A run may use
// the workspace at the same time and does not wait. Errors: agentloop.ErrWorkspaceTimeout, and
// what the provider returns.
func (f *Files) List(ctx context.Context, of workspace.Session, w *projector.Workspace, folder string) (entries []workspace.Entry, truncated bool, err error) {
	if w == nil || w.Ref == nil || w.Status == projector.WorkspaceGone {
		return nil, false, nil
	}
	p := f.Providers[w.ProviderID]
	if p == nil {
		return nil, false, &agentloop.WorkspaceWiringError{Provider: w.ProviderID, Known: f.Providers.Kinds()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, workspaceTimeout, errWorkspaceTimeout)
	defer cancel()
	err = f.Ask(ctx, p.ID(), askUse, func() error {
		ws, err := p.Resolve(ctx, of, w.Ref)
		if err != nil {
			return err
		}
		defer ws.Close()
		if ws.FS() == nil {
			return nil
		}
		entries, truncated, err = ws.FS().List(ctx, folder, true)
		return err
	})
	if errors.Is(err, workspace.ErrGone) {
		return nil, false, nil
	}
	if err != nil && errors.Is(context.Cause(ctx), errWorkspaceTimeout) {
		return nil, false, fmt.Errorf("%w: %w", agentloop.ErrWorkspaceTimeout, workspace.WithoutPath(err))
	}
	return entries, truncated, workspace.WithoutPath(err)
}
