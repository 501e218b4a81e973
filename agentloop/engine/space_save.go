package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// saveWorkspace keeps the session's files. If that fails the run goes on
// without: the next use tries again.
func (t *task) saveWorkspace(ctx context.Context) error {
	snapshot, err := t.takeSnapshot(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	record := t.fact(&eventlog.WorkspaceSaved{Snapshot: snapshot, FactBase: t.factBase()})
	if err != nil {
		record = t.workspaceFailed(t.recordedWorkspace(), err)
	}
	// A rollback voids it, which may come meanwhile.
	return t.appendIf(ctx, func() (still bool) {
		t.look(func(s *projector.Session) {
			still = s != nil && s.Turn != nil && s.Turn.RunID == t.runID && s.Running() && decide.Unsaved(s)
		})
		return still
	}, record)
}

func (t *task) takeSnapshot(ctx context.Context) (snapshot json.RawMessage, err error) {
	sp, g := t.space(), t.l.gateOf(t.session)
	defer t.l.leaveGate(t.session)
	if err := g.enterAlone(ctx); err != nil {
		return nil, err
	}
	defer g.leaveAlone()
	ctx, cancel := context.WithTimeoutCause(ctx, workspaceTimeout, errWorkspaceTimeout)
	defer cancel()
	w, ws := t.recordedWorkspace(), sp.open()
	if ws == nil {
		_, p, err := t.providerOf(w)
		if err != nil {
			return nil, err
		}
		err = t.l.ask(ctx, p.ID(), askResolve, func() (err error) { ws, err = p.Resolve(ctx, t.spaceOf(), w.Ref); return err })
		if err != nil {
			return nil, err
		}
		if !sp.keep(ws) {
			return nil, errLetGo
		}
	}
	if ws.Snapshots() == nil {
		return nil, errors.New("the provider keeps no snapshots any more")
	}
	err = t.l.ask(ctx, w.ProviderID, askSnapshot, func() (err error) { snapshot, err = ws.Snapshots().Take(ctx); return err })
	switch {
	case err != nil:
		return nil, err
	case len(snapshot) > workspace.MaxSnapshotRef || !plan.IsObject(snapshot):
		return nil, errors.New("the provider's snapshot is no object, or too large")
	}
	return snapshot, nil
}
