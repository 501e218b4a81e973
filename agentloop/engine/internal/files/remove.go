package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/projector"
)

// removeTreeTimeout bounds how long the files of one session tree may take to
// be removed.
const removeTreeTimeout = 5 * time.Minute

// Remove removes what this node's providers have of a session tree,
// and returns how many snapshots there were. left says which bytes may be left that
// no provider can remove; empty: none.
//
// Errors: ErrWorkspaceRemains.
func (f *Files) Remove(ctx context.Context, root string) (snapshots int, left string, err error) {
	for _, kind := range f.Providers.Kinds() {
		n, remains, rerr := f.RemoveFrom(ctx, f.Providers[kind], root)
		snapshots, left, err = snapshots+n, cmp.Or(left, remains), errors.Join(err, rerr)
	}
	return snapshots, left, err
}

// RemoveFrom removes what one provider has of a session tree, as Remove does.
func (f *Files) RemoveFrom(ctx context.Context, p workspace.Provider, root string) (snapshots int, left string, err error) {
	ctx, cancel := context.WithTimeout(ctx, removeTreeTimeout)
	defer cancel()
	err = f.Ask(ctx, p.ID(), askRemove, func() (err error) { snapshots, err = p.Remove(ctx, root); return err })
	switch {
	case errors.Is(err, workspace.ErrPending):
		return snapshots, err.Error(), nil
	case err != nil:
		return snapshots, "", fmt.Errorf("%w: %s: %w", agentloop.ErrWorkspaceRemains, p.ID(), err)
	}
	return snapshots, "", nil
}

// Collect has a provider remove replaced and deleted files of a session tree that is in use,
// if it is a workspace.Collector.
func (f *Files) Collect(ctx context.Context, p workspace.Provider, root string) error {
	c, is := p.(workspace.Collector)
	if !is {
		return nil
	}
	return f.Ask(ctx, p.ID(), askCollect, func() error { return c.Collect(ctx, root) })
}

// Elsewhere reports whether another node has a workspace.
func (f *Files) Elsewhere(ctx context.Context, p workspace.Provider, of workspace.Session, w *projector.Workspace) bool {
	if w.Ref == nil { // a fork that has not been opened; the snapshot is its own already
		return errors.Is(f.Ask(ctx, p.ID(), AskAdopt, func() (err error) { _, err = p.Adopt(ctx, of, w.Snapshot); return err }), workspace.ErrElsewhere)
	}
	return errors.Is(f.Ask(ctx, p.ID(), askResolve, func() error {
		ws, err := p.Resolve(ctx, of, w.Ref)
		if err == nil {
			err = ws.Close()
		}
		return err
	}), workspace.ErrElsewhere)
}
