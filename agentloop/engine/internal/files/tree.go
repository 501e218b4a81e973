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
	"github.com/helixd/helixd/agentloop/engine/internal/sharedlock"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// workspaceTimeout bounds how long it takes to open a workspace, to keep its
// files, or to make them others.
const workspaceTimeout = 2 * time.Minute

var (
	errWorkspaceTimeout = fmt.Errorf("it took longer than %s", workspaceTimeout)
	errLetGo            = errors.New("agentloop: the tree is not held any more")
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
	Append(ctx context.Context, still func() bool, facts ...eventlog.Fact) error
	FactBase() eventlog.FactBase
	Logger() *slog.Logger
}

// Tree has the workspaces of a session tree that are open here while this node
// holds the tree.
type Tree struct {
	files *Files

	mu     sync.Mutex
	spaces map[string]*space // by session; nil: the tree was released
}

// NewTree returns a tree of which no workspace is open.
func (f *Files) NewTree() *Tree { return &Tree{files: f, spaces: map[string]*space{}} }

// Close releases the tree's workspaces.
func (t *Tree) Close() {
	t.mu.Lock()
	spaces := t.spaces
	t.spaces = nil
	t.mu.Unlock()
	for _, sp := range spaces {
		sp.close()
	}
}

// space is a session's workspace while the tree is held here. Calls share
// it; opening it, saving its files and restoring them are exclusive.
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

// keep replaces the open workspace. It reports false if the tree was released.
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

// space returns a session's workspace.
func (t *Tree) space(s Session) *space {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := s.ID().ID
	sp := t.spaces[id]
	if sp == nil {
		sp = &space{edits: make(chan struct{}, 1), closed: t.spaces == nil}
		if !sp.closed {
			t.spaces[id] = sp
		}
	}
	return sp
}

// Use runs a call's operation on the session's workspace, which it
// opens if necessary.
func (t *Tree) Use(ctx context.Context, s Session, op workspace.Op, args json.RawMessage) (any, error) {
	sp, g := t.space(s), t.files.locks.Of(s.ID().ID)
	defer t.files.locks.Leave(s.ID().ID)
	for gone := workspace.Workspace(nil); ; {
		result, ws, err := t.use(ctx, s, sp, g, op, args)
		switch {
		case errors.Is(err, errNotOpen):
		case errors.Is(err, workspace.ErrGone) && gone == nil: // it was removed meanwhile: it is looked for once more
		default:
			return result, err
		}
		gone = ws
		if err := t.openSpace(ctx, s, sp, g, gone); err != nil {
			return nil, err
		}
	}
}

// use does it with the open workspace. Error: errNotOpen, if there is
// none with the files that the state says.
func (t *Tree) use(ctx context.Context, s Session, sp *space, g *sharedlock.Lock, op workspace.Op, args json.RawMessage) (result any, ws workspace.Workspace, err error) {
	if err := g.Share(ctx); err != nil {
		return nil, nil, err
	}
	defer g.Unshare()
	w, ws := s.Recorded(), sp.open()
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
	err = t.files.Ask(ctx, w.ProviderID, askUse, func() (err error) { result, err = op.Do(ctx, ws, args); return err })
	return result, ws, err
}
