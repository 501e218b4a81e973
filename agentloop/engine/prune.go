package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// outOfReach reports whether there may be files in workspaces of a tree that
// this node's providers don't reach.
func (l *Loop) outOfReach(ctx context.Context, root string) bool {
	t, err := l.states.Head(ctx, root)
	if err != nil {
		return !errors.Is(err, eventlog.ErrSessionNotFound)
	}
	for _, s := range t.Sessions() {
		w := s.Workspace
		if w == nil || w.Status == projector.WorkspaceGone || w.Ref == nil && w.Snapshot == nil {
			continue
		}
		if l.workspaces[w.ProviderID] == nil || l.files.Elsewhere(ctx, l.workspaces[w.ProviderID], workspace.Session{Root: root, ID: s.SessionID}, w) {
			l.opts.Logger.Warn("an erasure leaves files to the node that reaches them",
				eventlog.LogSession, root, "agent", s.SessionID, "provider", w.ProviderID)
			return true
		}
	}
	return false
}

// hasFiles reports whether there may be files in workspaces of a tree.
func hasFiles(t *projector.Tree) bool {
	for _, s := range t.Sessions() {
		if s.Workspace != nil && s.Workspace.Status != projector.WorkspaceGone {
			return true
		}
	}
	return false
}

// keptBy reports whether a provider may have files of a tree that are still of
// use.
func keptBy(p workspace.Provider, t *projector.Tree) bool {
	for _, s := range t.Sessions() {
		w := s.Workspace
		if w != nil && w.ProviderID == p.ID() && w.Status != projector.WorkspaceGone {
			return true
		}
	}
	return false
}

// ReasonExpired is why a sweep closes workspaces.
const ReasonExpired = "expired"

// closeWorkspaces removes the workspaces of a session that has expired, and says
// so. What another node alone can reach that finds by the record.
func (l *Loop) closeWorkspaces(ctx context.Context, session string, now int64, done *Swept) error {
	t, err := l.states.Head(ctx, session)
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return nil
	case err != nil:
		return err
	case !prunable(t, now):
		return nil
	}
	n, _, err := l.files.Remove(ctx, session) // Tidy waits for what is pending
	done.SnapshotsDeleted += n
	if err != nil {
		return err
	}
	_, err = l.requests.Update(ctx, session, func(t *projector.Tree) (facts []record.Draft, err error) {
		if t == nil || !prunable(t, now) { // a run that continues it finds that its files are lost
			return nil, nil
		}
		for _, s := range t.Sessions() {
			if s.Workspace != nil && s.Workspace.Status != projector.WorkspaceGone {
				facts = append(facts, record.About(s.SessionID, []record.Draft{{Fact: &eventlog.WorkspaceClosed{
					Reason: ReasonExpired, FactBase: l.clock.FactBase(s.SessionID),
				}}})...)
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
	for _, s := range t.Sessions() {
		if s.Turn != nil {
			return false
		}
	}
	return true
}

// TidyGrace is how long files must have been of no use before Tidy removes
// them: a fork's are there before its log is.
const TidyGrace = 15 * time.Minute

// Tidied is what Tidy has done.
type Tidied struct {
	Trees   int // of which files were removed
	Waiting int // of which files are removed when they have been of no use for TidyGrace, or bytes are still left
	Errors  int // trees that could not be looked at or removed; each is logged
}

// Tidy removes files that are left in workspaces: of trees that have been
// erased, or closed, by another node or half, and of forks that never came to
// be. Each node has to, since only it may reach some of its files. One at a
// time.
//
// Errors: those of listing what there is; ctx's.
func (l *Loop) Tidy(ctx context.Context) (Tidied, error) {
	select {
	case l.tidying <- struct{}{}:
		defer func() { <-l.tidying }()
	case <-ctx.Done():
		return Tidied{}, context.Cause(ctx)
	}
	var done Tidied
	now, useless := l.opts.Now(), map[string]time.Time{}
	for _, kind := range l.workspaces.Kinds() {
		p := l.workspaces[kind]
		roots, err := p.Roots(ctx)
		if err != nil {
			return done, fmt.Errorf("agentloop: tidy: %s: %w", kind, err)
		}
		for _, root := range roots {
			key := kind + " " + root
			used, err := l.usesFiles(ctx, p, root)
			since, known := l.useless[key]
			switch {
			case ctx.Err() != nil:
				return done, context.Cause(ctx)
			case err == nil && used:
				continue
			case err == nil && !known:
				since = now
			}
			if err == nil && now.Sub(since) >= TidyGrace {
				var pending bool
				if _, pending, err = l.files.RemoveFrom(ctx, p, root); err == nil && !pending {
					done.Trees++
					continue
				}
			}
			if err != nil {
				done.Errors++
				l.opts.Logger.Warn("left files were not removed", eventlog.LogSession, root, "provider", kind, "error", err)
			} else {
				done.Waiting++
			}
			if !since.IsZero() {
				useless[key] = since
			}
		}
	}
	l.useless = useless
	return done, nil
}

// usesFiles reports whether a tree's files are of use.
func (l *Loop) usesFiles(ctx context.Context, p workspace.Provider, root string) (bool, error) {
	t, err := l.states.Head(ctx, root)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	return err == nil && keptBy(p, t), err
}
