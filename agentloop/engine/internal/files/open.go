package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Errors that a model gets once, in place of a call's result, when the files are not
// those that it expects.
var (
	errFilesLost      = errors.New("the files of the workspace are lost: it is empty now")
	errFilesBack      = errors.New("the workspace was lost: its files are those of the last step that was saved")
	errFilesStay      = errors.New("the conversation was taken back, and the files were not: this workspace keeps no snapshots")
	errFilesElsewhere = errors.New("the files stayed in the session that this one was forked from: this workspace keeps no snapshots, and is empty")
	errFilesBehind    = errors.New("the files are behind the conversation: they are those of the last step that was saved, if any was")
)

// errLost begins the record of a failure while a lost workspace was not replaced yet, with
// the files that the state says. Once there is a new one, the provider can't say any more
// that the old one was lost.
var errLost = errors.New("the workspace is lost")

// lost reports whether the record says so. What opens the workspace clears it.
func lost(w *projector.Workspace) bool {
	return w != nil && w.Status == projector.WorkspaceBroken && strings.HasPrefix(w.Error, errLost.Error())
}

// openWorkspace has the workspace open, with the files that the state says, and
// that recorded. What fails is recorded, too. gone is one that is not there any
// more.
func (t *Tree) openWorkspace(ctx context.Context, s Session, held *Workspace, gone workspace.Workspace) error {
	unlock, err := t.files.locks.Lock(ctx, s.ID().ID)
	if err != nil {
		return err
	}
	defer unlock()
	if gone != nil && held.open() == gone {
		held.keep(nil)
	}
	w := s.Recorded()
	bounded, cancel := context.WithTimeoutCause(ctx, workspaceTimeout, errWorkspaceTimeout)
	defer cancel()
	o := opening{Session: s, files: t.files, held: held, w: w}
	err = o.open(bounded)
	var failed *workspaceFailure
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case !errors.As(err, &failed):
		return err
	}
	if cause := context.Cause(bounded); cause != nil && errors.Is(failed.err, bounded.Err()) {
		failed.err = cause
	}
	if err := s.Append(ctx, nil, failure(s, s.Recorded(), failed.err)); err != nil {
		return err
	}
	return fmt.Errorf("the workspace can't be used: %w", workspace.WithoutPath(failed.err))
}

// workspaceFailure is a provider's error.
type workspaceFailure struct{ err error }

func (e *workspaceFailure) Error() string { return e.err.Error() }
func (e *workspaceFailure) Unwrap() error { return e.err }

// failure is the record of a failure. That the workspace is lost stays recorded.
func failure(s Session, w *projector.Workspace, err error) fact.Fact {
	name, provider := named(s, w)
	if lost(w) {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	s.Logger().Warn("workspace failed", "provider", provider, "error", err)
	return &fact.WorkspaceFailed{Name: name, ProviderID: provider, Error: shorten.Error(err.Error()), Base: s.FactBase()}
}

// named returns the name and the kind of the session's workspace: the agent may
// have got another one since it was opened.
func named(s Session, w *projector.Workspace) (name, provider string) {
	agents := s.Workspace()
	switch {
	case w != nil && w.Status != projector.WorkspaceGone && (w.Ref != nil || w.Snapshot != nil):
		return w.Name, w.ProviderID
	case agents != nil:
		return agents.Name, agents.Provider
	case w != nil:
		return w.Name, w.ProviderID
	}
	return agentloop.DefaultWorkspaceName, ""
}

func (f *Files) providerOf(s Session, w *projector.Workspace) (name string, p workspace.Provider, err error) {
	name, kind := named(s, w)
	if p = f.Providers[kind]; p == nil {
		return "", nil, &workspaceFailure{fmt.Errorf("this node has no provider %q of workspaces", kind)}
	}
	return name, p, nil
}

// opening is one try to open a workspace.
type opening struct {
	Session
	files *Files
	held  *Workspace
	w     *projector.Workspace // as it was recorded, nil: never
}

func (o opening) open(ctx context.Context) error {
	name, p, err := o.files.providerOf(o.Session, o.w)
	if err != nil {
		return err
	}
	known := o.w != nil && o.w.Ref != nil && o.w.Status != projector.WorkspaceGone
	ws, ref, isLost, err := o.find(ctx, p, known)
	if err != nil {
		return err
	}
	var facts []fact.Fact // together: files that are lost must not be taken for the state's
	if !known || isLost || o.w.Status != projector.WorkspaceOpen {
		facts = append(facts, &fact.WorkspaceOpened{
			Name: name, ProviderID: p.ID(), Capabilities: o.capabilities(ws, p), Ref: ref, Base: o.FactBase(),
		})
	}
	var notice error
	if isLost || o.w != nil && o.w.Stale {
		if notice, err = o.restore(ctx, p.ID(), ws, known, isLost); err != nil {
			return err
		}
		facts = append(facts, &fact.WorkspaceRestored{Base: o.FactBase()})
	}
	if err := o.record(ctx, facts...); err != nil {
		return err
	}
	return notice
}

// find opens the workspace, or finds the one that is known. isLost says that
// there is a new one in place of the one that the session used.
func (o opening) find(ctx context.Context, p workspace.Provider, known bool) (ws workspace.Workspace, ref json.RawMessage, isLost bool, err error) {
	isLost = lost(o.w) || o.w != nil && o.w.Status == projector.WorkspaceGone // what was closed may still be here
	gone := false
	if known {
		ref = o.w.Ref
		if ws = o.held.open(); ws != nil {
			return ws, ref, isLost, nil
		}
		err = o.files.Ask(ctx, p.ID(), askResolve, func() (err error) { ws, err = p.Resolve(ctx, o.ID(), ref); return err })
		gone = errors.Is(err, workspace.ErrGone)
	}
	if gone && !isLost { // recorded first: what comes after it may fail, or the process may die
		if err := o.Append(ctx, nil, failure(o, o.w, errLost)); err != nil {
			return nil, nil, false, err
		}
		isLost = true
	}
	if !known || gone {
		err = o.files.Ask(ctx, p.ID(), askOpen, func() (err error) { ws, ref, err = p.Open(ctx, o.ID()); return err })
	}
	switch {
	case err != nil:
		return nil, nil, false, &workspaceFailure{err}
	case !o.held.keep(ws):
		return nil, nil, false, errReleased
	}
	return ws, ref, isLost, nil
}

// capabilities are what the agent may use of the workspace, and whether its
// files are kept at checkpoints.
func (o opening) capabilities(ws workspace.Workspace, p workspace.Provider) []fact.WorkspaceCapability {
	all := p.Capabilities()
	if w := o.Workspace(); w != nil {
		all = w.Capabilities
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c fact.WorkspaceCapability) bool { return c == fact.WorkspaceSnapshot })
	if ws.Snapshots() != nil {
		all = append(all, fact.WorkspaceSnapshot)
	}
	return all
}

// restore makes the files those of the state's snapshot, and returns an error for
// the model, nil if the files are those that it expects.
func (o opening) restore(ctx context.Context, provider string, ws workspace.Workspace, known, lost bool) (notice, err error) {
	files := ws.Snapshots()
	to := func(snapshot json.RawMessage) error {
		return o.files.Ask(ctx, provider, askRestore, func() error {
			if files == nil {
				return removeAll(ctx, ws.FS())
			}
			return files.Restore(ctx, snapshot)
		})
	}
	// The conversation has what no snapshot has, unless it was rolled back.
	behind := o.w.Dirty || lost && !o.w.Stale
	switch {
	case files == nil && known && !lost:
		return errFilesStay, nil
	case files == nil && lost:
		notice, err = errFilesLost, to(nil)
	case files == nil:
		notice, err = errFilesElsewhere, to(nil)
	default:
		err = to(o.w.Snapshot)
		switch {
		case errors.Is(err, workspace.ErrGone) && o.w.Snapshot != nil:
			notice, err = errFilesLost, to(nil)
		case behind && !lost:
			notice = errFilesBehind
		case behind && o.w.Snapshot == nil:
			notice = errFilesLost
		case behind:
			notice = errFilesBack
		}
	}
	if err != nil {
		return nil, &workspaceFailure{err}
	}
	return notice, nil
}

// removeAll removes the files of a workspace that has no snapshot to make them
// none.
func removeAll(ctx context.Context, files workspace.FS) error {
	for more := files != nil; more; {
		var entries []workspace.Entry
		var err error
		if entries, more, err = files.List(ctx, ".", false); err != nil {
			return err
		}
		for _, e := range entries {
			if err := files.Remove(ctx, e.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// record appends what became of the workspace. What the log does not take is no
// failure of the call's: it is made again.
func (o opening) record(ctx context.Context, facts ...fact.Fact) error {
	if len(facts) == 0 {
		return nil
	}
	still := func() bool { // another rollback may have come meanwhile
		w := o.Recorded()
		return w == nil || o.w != nil && bytes.Equal(w.Snapshot, o.w.Snapshot) && (!w.Stale || w.Dirty == o.w.Dirty)
	}
	err := o.Append(ctx, still, facts...)
	if errors.Is(err, eventlog.ErrStale) {
		return nil // it is looked at again
	}
	return err
}
