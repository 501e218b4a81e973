package drive

import (
	"context"
	"errors"
	"log/slog"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// filesOf is the session of a task as package files knows it.
type filesOf struct {
	*task
	c *toolCall // that uses the workspace; nil: none
}

func (f filesOf) ID() workspace.Session { return workspace.Session{Root: f.root, ID: f.session} }

func (f filesOf) Workspace() *agentloop.Workspace {
	if f.def == nil {
		return nil
	}
	return f.def.Workspace
}

func (f filesOf) Recorded() (w *projector.Workspace) {
	f.look(func(s *projector.Session) {
		if s != nil && s.Workspace != nil {
			known := *s.Workspace
			w = &known
		}
	})
	return w
}

// Append appends facts. What the log does not take is no failure of the call's: it
// is made again.
func (f filesOf) Append(ctx context.Context, still func() bool, facts ...fact.Fact) error {
	drafts := make([]record.Draft, len(facts))
	for i, one := range facts {
		drafts[i] = f.fact(one)
	}
	err := f.appendIf(ctx, still, drafts...)
	if f.c != nil && !errors.Is(err, eventlog.ErrStale) {
		f.c.lose(err)
	}
	return err
}

func (f filesOf) FactBase() fact.Base { return f.factBase() }

func (f filesOf) Logger() *slog.Logger { return f.logger() }

// saveWorkspace keeps the session's files.
func (t *task) saveWorkspace(ctx context.Context) error {
	return t.files.Save(ctx, filesOf{task: t}, func() (still bool) {
		t.look(func(s *projector.Session) {
			still = s != nil && s.Turn != nil && s.Turn.RunID == t.runID && s.Running() && decide.Unsaved(s)
		})
		return still
	})
}
