package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/projector"
)

// workspaceTimeout bounds how long it takes to open a workspace, to keep its
// files, or to make them others.
const workspaceTimeout = 2 * time.Minute

var (
	errWorkspaceTimeout = fmt.Errorf("it took longer than %s", workspaceTimeout)
	errLetGo            = errors.New("agentloop: the tree is not held any more")
	errNotOpen          = errors.New("agentloop: the workspace is not open")
	errProviderPanicked = errors.New("the provider failed unexpectedly")
)

// space is a session's workspace while the tree is held here. Calls use it
// together; whoever opens it, keeps its files or makes them others is alone.
type space struct {
	edits chan struct{} // held by the one edit at a time

	mu     sync.Mutex
	ws     workspace.Workspace // nil: not opened here
	closed bool
}

func (sp *space) open() workspace.Workspace {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return sp.ws
}

// keep replaces the open workspace. It reports false if the tree was let go.
func (sp *space) keep(ws workspace.Workspace) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.ws != nil {
		_ = sp.ws.Close() // the files stay
	}
	sp.ws = ws
	if sp.closed && ws != nil {
		_ = ws.Close()
		sp.ws = nil
	}
	return !sp.closed
}

func (sp *space) close() {
	sp.mu.Lock()
	sp.closed = true
	sp.mu.Unlock()
	sp.keep(nil)
}

// space is the workspace of the task's session.
func (t *task) space() *space {
	t.mu.Lock()
	defer t.mu.Unlock()
	sp := t.spaces[t.session]
	if sp == nil {
		sp = &space{edits: make(chan struct{}, 1), closed: t.spaces == nil}
		if !sp.closed {
			t.spaces[t.session] = sp
		}
	}
	return sp
}

// gateOf is the gate of a session's workspace, for who uses that until
// leaveGate: what a run has left that is not over yet has the next run come
// upon it.
func (l *Loop) gateOf(session string) *gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gates[session]
	if g == nil {
		g = newGate()
		l.gates[session] = g
	}
	g.using++
	return g
}

// leaveGate undoes gateOf.
func (l *Loop) leaveGate(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.gates[session]; g.using > 1 {
		g.using--
	} else {
		delete(l.gates, session)
	}
}

// closeSpaces lets go of the tree's workspaces.
func (r *runner) closeSpaces() {
	r.mu.Lock()
	spaces := r.spaces
	r.spaces = nil
	r.mu.Unlock()
	for _, sp := range spaces {
		sp.close()
	}
}

// recordedWorkspace is what the log knows of the session's workspace, nil if it
// was never used.
func (t *task) recordedWorkspace() (w *projector.Workspace) {
	t.look(func(s *projector.Session) {
		if s != nil && s.Workspace != nil {
			known := *s.Workspace
			w = &known
		}
	})
	return w
}

func (t *task) spaceOf() workspace.Session { return workspace.Session{Root: t.root, ID: t.session} }

// inWorkspace does what a call wants with the session's workspace, which it
// opens if nobody has.
func (t *task) inWorkspace(ctx context.Context, c *toolCall, op workspace.Op, args json.RawMessage) (any, error) {
	sp, g := t.space(), t.l.gateOf(t.session)
	defer t.l.leaveGate(t.session)
	for gone := workspace.Workspace(nil); ; {
		result, ws, err := t.useWorkspace(ctx, sp, g, op, args)
		switch {
		case errors.Is(err, errNotOpen):
		case errors.Is(err, workspace.ErrGone) && gone == nil: // it was removed meanwhile: it is looked for once more
		default:
			return result, err
		}
		gone = ws
		if err := t.openWorkspace(ctx, c, sp, g, gone); err != nil {
			return nil, err
		}
	}
}

// useWorkspace does it with the open workspace. Error: errNotOpen, if there is
// none with the files that the state says.
func (t *task) useWorkspace(ctx context.Context, sp *space, g *gate, op workspace.Op, args json.RawMessage) (result any, ws workspace.Workspace, err error) {
	if err := g.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer g.leave()
	w, ws := t.recordedWorkspace(), sp.open()
	if ws == nil || w == nil || w.Status != projector.WorkspaceOpen || w.Stale {
		return nil, nil, errNotOpen
	}
	if op.Edits {
		select {
		case sp.edits <- struct{}{}:
			defer func() { <-sp.edits }()
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	err = t.l.ask(ctx, w.ProviderID, askUse, func() (err error) { result, err = op.Do(ctx, ws, args); return err })
	return result, ws, err
}

// What a provider of workspaces is asked for, as it is measured.
const (
	askOpen     = "open"
	askResolve  = "resolve"
	askUse      = "use"
	askSnapshot = "snapshot"
	askRestore  = "restore"
	askAdopt    = "adopt"
	askRemove   = "remove"
)

// ask has a provider of workspaces do something. Its panic is an error.
func (l *Loop) ask(ctx context.Context, provider, what string, do func() error) (err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			l.opts.Logger.Error("a provider of workspaces panicked", "provider", provider, "panic", p, "stack", string(debug.Stack()))
			err = errProviderPanicked
		}
		l.opts.Metrics.asked(ctx, provider, what, err, time.Since(began))
	}()
	return do()
}
