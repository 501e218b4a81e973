package files

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
)

// Save keeps the session's files, unless still reports false: a rollback, which
// voids it, may come meanwhile. If saving fails the run continues without: the next
// use tries again.
func (t *Tree) Save(ctx context.Context, s Session, still func() bool) error {
	snapshot, err := t.takeSnapshot(ctx, s)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var saved fact.Fact = &fact.WorkspaceSaved{Snapshot: snapshot, Base: s.FactBase()}
	if err != nil {
		saved = failure(s, s.Recorded(), err)
	}
	return s.Append(ctx, still, saved)
}

func (t *Tree) takeSnapshot(ctx context.Context, s Session) (snapshot json.RawMessage, err error) {
	unlock, err := t.files.locks.Lock(ctx, s.ID().ID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, workspaceTimeout, errWorkspaceTimeout)
	defer cancel()
	held := t.workspace(s)
	w, ws := s.Recorded(), held.open()
	if ws == nil {
		_, p, err := t.files.providerOf(s, w)
		if err != nil {
			return nil, err
		}
		err = t.files.Ask(ctx, p.ID(), askResolve, func() (err error) { ws, err = p.Resolve(ctx, s.ID(), w.Ref); return err })
		if err != nil {
			return nil, err
		}
		if !held.keep(ws) {
			return nil, errReleased
		}
	}
	if ws.Snapshots() == nil {
		return nil, errors.New("the provider keeps no snapshots any more")
	}
	err = t.files.Ask(ctx, w.ProviderID, askSnapshot, func() (err error) { snapshot, err = ws.Snapshots().Take(ctx); return err })
	switch {
	case err != nil:
		return nil, err
	case len(snapshot) > workspace.MaxSnapshotRef || !plan.IsObject(snapshot):
		return nil, errors.New("the provider's snapshot is no object, or too large")
	}
	return snapshot, nil
}
