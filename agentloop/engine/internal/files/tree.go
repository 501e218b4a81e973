package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// workspaceTimeout bounds how long it takes to open a workspace, to keep its
// files, or to make them others.
const workspaceTimeout = 2 * time.Minute

var (
	errWorkspaceTimeout = fmt.Errorf("it took longer than %s", workspaceTimeout)
	errReleased         = errors.New("agentloop: the tree is not held any more")
	errNotOpen          = errors.New("agentloop: the workspace is not open")
)

// Session is a session whose workspace is used.
type Session interface {
	ID() workspace.Session
	// Workspace is what the session's agent has; nil: none, or the agent is not here.
	Workspace() *agentloop.Workspace
	// Recorded is what the log knows of the workspace now; nil: it was never used.
	Recorded() *projector.Workspace
	// Append appends facts. It fails with eventlog.ErrStale if still, which may be
	// nil, reports false.
	Append(ctx context.Context, still func() bool, facts ...fact.Fact) error
	FactBase() fact.Base
	Logger() *slog.Logger
}

// Tree has the workspaces of a session tree that are open here while this node
// holds the tree.
type Tree struct {
	files *Files

	mu         sync.Mutex
	workspaces map[string]*Workspace // by session; nil: the tree was released
}

// NewTree returns a tree of which no workspace is open.
func (f *Files) NewTree() *Tree { return &Tree{files: f, workspaces: map[string]*Workspace{}} }

// Close releases the tree's workspaces.
func (t *Tree) Close() {
	t.mu.Lock()
	workspaces := t.workspaces
	t.workspaces = nil
	t.mu.Unlock()
	for _, held := range workspaces {
		held.close()
	}
}

// Workspace is a session's workspace while the tree is held here. Calls share
// it; opening it, saving its files and restoring them are exclusive.
type Workspace struct {
	edits chan struct{} // held by the one edit at a time

	mu     sync.Mutex
	ws     workspace.Workspace // nil: not opened here
	closed bool
}

func (w *Workspace) open() workspace.Workspace {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ws
}

// keep replaces the open workspace. It reports false if the tree was released.
func (w *Workspace) keep(ws workspace.Workspace) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ws != nil {
		_ = w.ws.Close() // the files stay
	}
	w.ws = ws
	if w.closed && ws != nil {
		_ = ws.Close()
		w.ws = nil
	}
	return !w.closed
}

func (w *Workspace) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.keep(nil)
}

// workspace returns a session's workspace.
func (t *Tree) workspace(s Session) *Workspace {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := s.ID().ID
	held := t.workspaces[id]
	if held == nil {
		held = &Workspace{edits: make(chan struct{}, 1), closed: t.workspaces == nil}
		if !held.closed {
			t.workspaces[id] = held
		}
	}
	return held
}

// Use runs a call's operation on the session's workspace, which it
// opens if necessary.
func (t *Tree) Use(ctx context.Context, s Session, op workspace.Op, args json.RawMessage) (any, error) {
	held := t.workspace(s)
	for gone := workspace.Workspace(nil); ; {
		result, ws, err := t.use(ctx, s, held, op, args)
		switch {
		case errors.Is(err, errNotOpen):
		case errors.Is(err, workspace.ErrGone) && gone == nil: // it was removed meanwhile: it is looked for once more
		default:
			return result, err
		}
		gone = ws
		if err := t.openWorkspace(ctx, s, held, gone); err != nil {
			return nil, err
		}
	}
}

// use does it with the open workspace. Error: errNotOpen, if there is
// none with the files that the state says.
func (t *Tree) use(ctx context.Context, s Session, held *Workspace, op workspace.Op, args json.RawMessage) (result any, ws workspace.Workspace, err error) {
	unlock, err := t.files.locks.Share(ctx, s.ID().ID)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	w, ws := s.Recorded(), held.open()
	if ws == nil || w == nil || w.Status != projector.WorkspaceOpen || w.Stale {
		return nil, nil, errNotOpen
	}
	if op.Edits {
		select {
		case held.edits <- struct{}{}:
			defer func() { <-held.edits }()
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
	err = t.files.Ask(ctx, w.ProviderID, askUse, func() (err error) { result, err = op.Do(ctx, ws, args); return err })
	return result, ws, err
}
