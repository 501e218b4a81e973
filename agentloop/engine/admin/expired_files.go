package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// hasFiles reports whether there may be files in workspaces of a tree.
func hasFiles(t *projector.Tree) bool { return slices.ContainsFunc(t.Sessions(), holdsFiles) }

func holdsFiles(s *projector.Session) bool {
	return s.Workspace != nil && s.Workspace.Status != projector.WorkspaceGone
}

// reasonExpired is why a sweep closes workspaces.
const reasonExpired = "expired"

// closeWorkspaces removes the workspaces of a session that has expired, and says
// so. What another node alone can reach that finds by the record.
func (a *Admin) closeWorkspaces(ctx context.Context, session string, now int64, done *Swept) error {
	t, err := a.requests.States.Head(ctx, session)
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return nil
	case err != nil:
		return err
	case !prunable(t, now):
		return nil
	}
	n, _, err := a.files.Remove(ctx, session) // Tidy waits for what is pending
	done.SnapshotsDeleted += n
	if err != nil {
		return err
	}
	_, err = a.requests.Update(ctx, session, func(t *projector.Tree) (facts []record.Draft, err error) {
		if t == nil || !prunable(t, now) { // a run that continues it finds that its files are lost
			return nil, nil
		}
		for _, s := range t.Sessions() {
			if holdsFiles(s) {
				facts = append(facts, record.Draft{Agent: s.SessionID, Fact: &fact.WorkspaceClosed{
					Reason: reasonExpired, Base: a.requests.Clock.FactBase(s.SessionID),
				}})
			}
		}
		return facts, nil
	})
	return err
}

// prunable reports whether a session has expired and ended, and has files.
func prunable(t *projector.Tree, now int64) bool {
	if t.ExpiresAt == 0 || t.ExpiresAt > now || !hasFiles(t) {
		return false
	}
	return !slices.ContainsFunc(t.Sessions(), func(s *projector.Session) bool { return s.Turn != nil })
}
