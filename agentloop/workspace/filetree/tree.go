// Package filetree describes the files of a workspace as a value, for the manifests of an object
// store and for snapshots, and checks their names.
package filetree

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
)

// MaxFiles is how many files Put makes.
const MaxFiles = 10_000

// MaxKept is how many bytes the snapshots of a session tree may keep, with
// workspaces of at most maxBytes each.
func MaxKept(maxBytes int64) int64 { return 4 * maxBytes }

// Kept is how many bytes a kept content of that size counts.
func Kept(size int64) int64 { return max(size, 4<<10) }

// Tree is the files by name. A folder exists if it has files; a folder
// with its own entry also exists if it is empty.
type Tree map[string]Node

// Node is a file, a symbolic link or a folder.
type Node struct {
	Mode     fs.FileMode `json:"mode"` // the type, and the permissions
	Size     int64       `json:"size,omitempty"`
	Modified time.Time   `json:"modified"`
	Hash     string      `json:"hash,omitempty"` // of a file's content: SHA-256, hexadecimal
	Link     string      `json:"link,omitempty"` // where a link leads
	Data     []byte      `json:"-"`              // the content, where the tree itself keeps it
}

// Size is how many bytes the files have.
func (t Tree) Size() (n int64) {
	for _, node := range t {
		n += node.Size
	}
	return n
}

// folder reports whether there is a folder of that name.
func (t Tree) folder(name string) bool {
	if node, ok := t[name]; ok {
		return node.Mode.IsDir()
	}
	return name == "." || len(t.below(name)) > 0
}

// below returns the names of what is in a folder and its folders, unsorted.
func (t Tree) below(folder string) (names []string) {
	for name := range t {
		if within(name, folder) {
			names = append(names, name)
		}
	}
	return names
}

func within(name, folder string) bool {
	return folder == "." && name != "." || strings.HasPrefix(name, folder+"/")
}

// Get returns a file.
func (t Tree) Get(name string) (Node, error) {
	if node, ok := t[name]; ok && !node.Mode.IsDir() {
		return node, nil
	}
	if t.folder(name) {
		return Node{}, fmt.Errorf("%s: %w", name, workspace.ErrFolder)
	}
	return Node{}, t.missing(name)
}

// missing says why there is nothing of that name.
func (t Tree) missing(name string) error {
	if err := t.roomFor(name); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// roomFor reports whether what is above a name are folders, or nothing.
func (t Tree) roomFor(name string) error {
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if node, ok := t[up]; ok && !node.Mode.IsDir() {
			return fmt.Errorf("%s: %w", up, workspace.ErrNotFolder)
		}
	}
	return nil
}

// Put makes a file, or replaces it.
func (t Tree) Put(name string, node Node) error {
	if t.folder(name) {
		return fmt.Errorf("%s: %w", name, workspace.ErrFolder)
	}
	if err := t.roomFor(name); err != nil {
		return err
	}
	if !t.has(name) && len(t) >= MaxFiles {
		return fmt.Errorf("%s: %w: %d files are allowed", name, workspace.ErrQuota, MaxFiles)
	}
	t[name] = node
	return nil
}

// Remove removes a file, or a folder with everything in it.
func (t Tree) Remove(name string) error {
	if name == "." {
		return fmt.Errorf("%w: the workspace itself stays", workspace.ErrName)
	}
	_, file := t[name]
	below := t.below(name)
	if !file && len(below) == 0 {
		return t.missing(name)
	}
	delete(t, name)
	for _, b := range below {
		delete(t, b)
	}
	return nil
}

// Rename moves a file, replacing one, or a folder to where nothing is. Names of what is in
// the folder become longer with its own: if one would be too long, nothing is moved.
func (t Tree) Rename(from, to string) error {
	if from == "." || to == "." {
		return fmt.Errorf("%w: the workspace itself stays", workspace.ErrName)
	}
	node, ok := t[from]
	below := t.below(from)
	switch {
	case !ok && len(below) == 0:
		return t.missing(from)
	case from == to:
		return nil
	case within(to, from):
		return fmt.Errorf("%s: %w: it is in what is moved", to, workspace.ErrName)
	case t.folder(to), len(below) > 0 && t.has(to):
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	if err := t.roomFor(to); err != nil {
		return err
	}
	for _, b := range below {
		if err := workspace.CheckName(to + strings.TrimPrefix(b, from)); err != nil {
			return err
		}
	}
	if ok {
		delete(t, from)
		t[to] = node
	}
	for _, b := range below {
		t[to+strings.TrimPrefix(b, from)] = t[b]
		delete(t, b)
	}
	return nil
}

func (t Tree) has(name string) bool { _, ok := t[name]; return ok }

// Stat returns what has that name.
func (t Tree) Stat(name string) (workspace.Entry, error) {
	if node, ok := t[name]; ok && !node.Mode.IsDir() {
		return node.entry(name), nil
	}
	if !t.folder(name) {
		return workspace.Entry{}, t.missing(name)
	}
	return t.entry(name), nil
}

func (n Node) entry(name string) workspace.Entry {
	return workspace.Entry{Name: name, Size: n.Size, Mode: n.Mode, Modified: n.Modified}
}

// entry is a folder. It is as old as the youngest of what it holds.
func (t Tree) entry(folder string) workspace.Entry {
	e := workspace.Entry{Name: folder, Dir: true, Mode: fs.ModeDir | 0o755}
	if node, ok := t[folder]; ok {
		e.Mode, e.Modified = node.Mode, node.Modified
	}
	for _, b := range t.below(folder) {
		if m := t[b].Modified; m.After(e.Modified) {
			e.Modified = m
		}
	}
	return e
}

// List implements workspace.FS.
func (t Tree) List(folder string, recursive bool) (entries []workspace.Entry, truncated bool, err error) {
	if !t.folder(folder) {
		if t.has(folder) {
			return nil, false, fmt.Errorf("%s: %w", folder, workspace.ErrNotFolder)
		}
		return nil, false, t.missing(folder)
	}
	found := map[string]workspace.Entry{}
	for _, name := range t.below(folder) {
		relative := name
		if folder != "." {
			relative = strings.TrimPrefix(name, folder+"/")
		}
		node := t[name]
		e := node.entry(relative)
		e.Dir = node.Mode.IsDir()
		parts := strings.Split(relative, "/")
		if recursive || len(parts) == 1 {
			found[relative] = e
		}
		// The folders on the way to it.
		for i := 1; i < len(parts) && (recursive || i == 1); i++ {
			up := strings.Join(parts[:i], "/")
			dir, ok := found[up]
			if !ok {
				dir = workspace.Entry{Name: up, Dir: true, Mode: fs.ModeDir | 0o755}
			}
			if node.Modified.After(dir.Modified) {
				dir.Modified = node.Modified
			}
			found[up] = dir
		}
	}
	names := slices.SortedFunc(maps.Keys(found), Compare)
	truncated = len(names) > workspace.MaxEntries
	for _, name := range names[:min(len(names), workspace.MaxEntries)] {
		entries = append(entries, found[name])
	}
	return entries, truncated, nil
}

// Compare orders names: each folder comes before its files, which are
// ordered by bytes.
func Compare(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}
