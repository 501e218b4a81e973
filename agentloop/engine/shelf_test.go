package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
)

// shelf is a provider of workspaces in memory, which outlives processes as a
// disk does. Its shell knows one command, `append WORD FILE`, and runs nothing
// twice at once.
type shelf struct {
	id    string
	offer []fact.WorkspaceCapability

	// fails, if set, is asked before anything is done.
	fails func(what string) error

	mu    sync.Mutex
	trees map[string]map[string]*desk // by root and session

	opened, resolved, taken, restored, adopted, removed, done atomic.Int64
}

// desk is what there is of a session.
type desk struct {
	files     map[string]string
	snapshots []map[string]string
	lost      bool
}

func newShelf() *shelf {
	return &shelf{
		id: "shelf", trees: map[string]map[string]*desk{},
		offer: []fact.WorkspaceCapability{fact.WorkspaceFS, fact.WorkspaceShell, fact.WorkspaceSnapshot},
	}
}

func (s *shelf) ID() string                               { return s.id }
func (s *shelf) Capabilities() []fact.WorkspaceCapability { return s.offer }

func (s *shelf) begin(what string, n *atomic.Int64) error {
	n.Add(1)
	if s.fails != nil {
		return s.fails(what)
	}
	return nil
}

// desk returns what there is of a session, nil if there is nothing. The caller
// has the lock.
func (s *shelf) desk(of workspace.Session, create bool) *desk {
	if s.trees[of.Root][of.ID] == nil && create {
		if s.trees[of.Root] == nil {
			s.trees[of.Root] = map[string]*desk{}
		}
		s.trees[of.Root][of.ID] = &desk{files: map[string]string{}}
	}
	return s.trees[of.Root][of.ID]
}

func (s *shelf) Open(_ context.Context, of workspace.Session) (workspace.Workspace, json.RawMessage, error) {
	if err := s.begin("open", &s.opened); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.desk(of, true); d.lost {
		d.files, d.lost = map[string]string{}, false
	}
	return &onShelf{shelf: s, of: of}, json.RawMessage(`{"desk":"` + of.ID + `"}`), nil
}

func (s *shelf) Resolve(_ context.Context, of workspace.Session, _ json.RawMessage) (workspace.Workspace, error) {
	if err := s.begin("resolve", &s.resolved); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.desk(of, false); d == nil || d.lost {
		return nil, workspace.ErrGone
	}
	return &onShelf{shelf: s, of: of}, nil
}

// shelfSnapshot is a snapshot's reference: of which session, and the number.
type shelfSnapshot struct {
	Of workspace.Session `json:"of"`
	N  int               `json:"n"`
}

func (s *shelf) snapshot(raw json.RawMessage) (map[string]string, error) {
	var ref shelfSnapshot
	if err := json.Unmarshal(raw, &ref); err != nil {
		return nil, err
	}
	if d := s.desk(ref.Of, false); d != nil && ref.N < len(d.snapshots) {
		return d.snapshots[ref.N], nil
	}
	return nil, workspace.ErrGone
}

// keep adds a snapshot, unless there is the same.
func (d *desk) keep(of workspace.Session, files map[string]string) json.RawMessage {
	n := slices.IndexFunc(d.snapshots, func(old map[string]string) bool { return maps.Equal(old, files) })
	if n < 0 {
		n = len(d.snapshots)
		d.snapshots = append(d.snapshots, maps.Clone(files))
	}
	raw, _ := json.Marshal(shelfSnapshot{Of: of, N: n})
	return raw
}

func (s *shelf) Adopt(_ context.Context, of workspace.Session, snapshot json.RawMessage) (json.RawMessage, error) {
	if err := s.begin("adopt", &s.adopted); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := s.snapshot(snapshot)
	if err != nil {
		return nil, err
	}
	return s.desk(of, true).keep(of, files), nil
}

func (s *shelf) Remove(_ context.Context, root string) (snapshots int, err error) {
	if err := s.begin("remove", &s.removed); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.trees[root] {
		snapshots += len(d.snapshots)
	}
	delete(s.trees, root)
	return snapshots, nil
}

func (s *shelf) Roots(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.trees)), nil
}

// lose loses the files of a session's workspace, and keeps its snapshots.
func (s *shelf) lose(of workspace.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desk(of, false).lost = true
}

// files are those of a session's workspace, as "name: content" lines.
func (s *shelf) files(of workspace.Session) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.desk(of, false)
	if d == nil {
		return "there is no workspace"
	}
	lines := make([]string, 0, len(d.files))
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		lines = append(lines, fmt.Sprintf("%s: %q", name, d.files[name]))
	}
	return strings.Join(lines, "\n")
}

// onShelf is an open workspace.
type onShelf struct {
	shelf *shelf
	of    workspace.Session
	shut  atomic.Bool
}

func (w *onShelf) FS() workspace.FS       { return w }
func (w *onShelf) Code() workspace.Code   { return nil }
func (w *onShelf) Shell() workspace.Shell { return w }
func (w *onShelf) Close() error           { w.shut.Store(true); return nil }
func (w *onShelf) Snapshots() workspace.Snapshots {
	if !slices.Contains(w.shelf.offer, fact.WorkspaceSnapshot) {
		return nil
	}
	return w
}

// use calls f with the desk.
func (w *onShelf) use(what string, f func(d *desk) error) error {
	if w.shut.Load() {
		return errors.New("the workspace was closed")
	}
	if err := w.shelf.begin(what, &w.shelf.done); err != nil {
		return err
	}
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	d := w.shelf.desk(w.of, false)
	if d == nil || d.lost {
		return workspace.ErrGone
	}
	return f(d)
}

func (w *onShelf) ReadFile(_ context.Context, name string) (data []byte, err error) {
	err = w.use("read", func(d *desk) error {
		text, ok := d.files[name]
		if !ok {
			return fs.ErrNotExist
		}
		data = []byte(text)
		return nil
	})
	return data, err
}

func (w *onShelf) WriteFile(_ context.Context, name string, data []byte) error {
	return w.use("write", func(d *desk) error {
		d.files[name] = string(data)
		return nil
	})
}

func (w *onShelf) Remove(_ context.Context, name string) error {
	return w.use("remove", func(d *desk) error {
		maps.DeleteFunc(d.files, func(n, _ string) bool { return n == name || strings.HasPrefix(n, name+"/") })
		return nil
	})
}

func (w *onShelf) Rename(_ context.Context, from, to string) error {
	return w.use("rename", func(d *desk) error {
		text, ok := d.files[from]
		if !ok {
			return fs.ErrNotExist
		}
		delete(d.files, from)
		d.files[to] = text
		return nil
	})
}

func (w *onShelf) List(_ context.Context, name string, recursive bool) (entries []workspace.Entry, truncated bool, err error) {
	err = w.use("list", func(d *desk) error {
		for n, text := range d.files {
			rest, ok := n, true
			if name != "." {
				rest, ok = strings.CutPrefix(n, name+"/")
			}
			if ok && (recursive || path.Dir(rest) == ".") {
				entries = append(entries, workspace.Entry{Name: rest, Size: int64(len(text))})
			}
		}
		return nil
	})
	slices.SortFunc(entries, func(a, b workspace.Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, false, err
}

func (w *onShelf) Stat(_ context.Context, name string) (e workspace.Entry, err error) {
	err = w.use("stat", func(d *desk) error {
		text, ok := d.files[name]
		if !ok {
			return fs.ErrNotExist
		}
		e = workspace.Entry{Name: path.Base(name), Size: int64(len(text))}
		return nil
	})
	return e, err
}

func (w *onShelf) Run(_ context.Context, c workspace.Command) (o workspace.Outcome, err error) {
	words := strings.Fields(c.Line)
	if len(words) != 3 || words[0] != "append" {
		return workspace.Outcome{ExitCode: 127, Stderr: "not found"}, nil
	}
	err = w.use("run", func(d *desk) error {
		d.files[words[2]] += words[1]
		o.Stdout = d.files[words[2]]
		return nil
	})
	return o, err
}

func (w *onShelf) Take(context.Context) (snapshot json.RawMessage, err error) {
	w.shelf.taken.Add(1)
	err = w.use("take", func(d *desk) error {
		snapshot = d.keep(w.of, d.files)
		return nil
	})
	return snapshot, err
}

func (w *onShelf) Restore(_ context.Context, snapshot json.RawMessage) error {
	w.shelf.restored.Add(1)
	return w.use("restore", func(d *desk) error {
		if snapshot == nil {
			d.files = map[string]string{}
			return nil
		}
		files, err := w.shelf.snapshot(snapshot)
		if err != nil {
			return err
		}
		d.files = maps.Clone(files)
		return nil
	})
}
