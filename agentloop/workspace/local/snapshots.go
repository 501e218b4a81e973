package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// snapshot is what the provider says of one.
type snapshot struct {
	Host     string `json:"host"`
	Tree     string `json:"tree"`     // the folder's name
	Snapshot string `json:"snapshot"` // SHA-256 of what is in its file
}

func (p *Provider) parseSnapshot(text json.RawMessage) (s snapshot, err error) {
	err = json.Unmarshal(text, &s)
	if err != nil || s.Host == "" || !isHex(s.Tree, 16) || !isHex(s.Snapshot, sha256.Size) {
		return s, fmt.Errorf("local workspace: this is not a snapshot: %.100s", text)
	}
	if s.Host != p.host {
		return s, workspace.ErrElsewhere
	}
	return s, nil
}

func isHex(s string, bytes int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == bytes
}

func (p *Provider) folderOf(s snapshot) string { return filepath.Join(p.dir, "trees", s.Tree) }

func (p *Provider) contents(tree string) string {
	return filepath.Join(p.dir, "trees", tree, "contents")
}

// load returns what a snapshot is of. Error: workspace.ErrGone.
func (p *Provider) load(s snapshot) (t filetree.Tree, text []byte, err error) {
	text, err = os.ReadFile(filepath.Join(p.folderOf(s), "snapshots", s.Snapshot))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("snapshot: %w", workspace.ErrGone)
	}
	if err != nil {
		return nil, nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != s.Snapshot {
		return nil, nil, errors.New("the snapshot is damaged")
	}
	return t, text, json.Unmarshal(text, &t)
}

// Take implements workspace.Snapshots.
func (s *space) Take(ctx context.Context) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Err() != nil {
		return nil, workspace.ErrGone
	}
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	tree := encoded(s.session.Root)
	t, err := s.scan(ctx, tree)
	if err != nil {
		return nil, fmt.Errorf("local workspace: snapshot: %w", err)
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	taken := snapshot{Host: s.p.host, Tree: tree, Snapshot: hex.EncodeToString(sum[:])}
	name := filepath.Join(s.p.folderOf(taken), "snapshots", taken.Snapshot)
	if _, err = os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if err = s.p.keepMore(tree, int64(len(text))); err == nil {
			err = syncFolder(s.p.contents(tree))
		}
		if err == nil {
			err = create(name, text)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("local workspace: snapshot: %w", err)
	}
	return json.Marshal(taken)
}

// scan returns what there is; with a tree, its contents are kept there. What is
// no file of the agent's, or has a name that is not UTF-8, is left out.
func (s *space) scan(ctx context.Context, tree string) (t filetree.Tree, err error) {
	t = filetree.Tree{}
	hashes := map[string]seen{}
	var unlocked []func() error // lock it again; the innermost are last
	defer func() {
		for _, lock := range slices.Backward(unlocked) {
			err = errors.Join(err, lock())
		}
	}()
	unlock := func(name string, info fs.FileInfo) error {
		lock, err := s.letRead(name, info)
		if lock != nil {
			unlocked = append(unlocked, lock)
		}
		return err
	}
	err = s.walk(ctx, ".", true, func(name string, info fs.FileInfo) (bool, error) {
		err := unlock(name, info)
		if err == nil && !utf8.ValidString(name) {
			return true, nil
		}
		node := filetree.Node{Mode: info.Mode().Type() | info.Mode().Perm()}
		switch {
		case err != nil || info.IsDir():
		case info.Mode().Type() == fs.ModeSymlink:
			if node.Link, err = s.root.Readlink(name); err == nil && !utf8.ValidString(node.Link) {
				return true, nil
			}
		case info.Mode().IsRegular():
			node.Size, node.Modified = info.Size(), info.ModTime().UTC()
			node.Hash, err = s.hash(ctx, name, info, tree, hashes)
		default:
			return true, nil // a socket or a pipe is nothing without its process
		}
		if errors.Is(err, errNotOwn) {
			return true, nil
		}
		if err != nil {
			return false, s.wrong(name, err)
		}
		t[name] = node
		return true, nil
	})
	s.seen = hashes
	return t, err
}

// letRead lets the owner read what it has forbidden itself. lock forbids it
// again, nil: it was not.
func (s *space) letRead(name string, info fs.FileInfo) (lock func() error, err error) {
	need := fs.FileMode(0)
	switch {
	case info.IsDir():
		need = 0o500
	case info.Mode().IsRegular():
		need = 0o400
	}
	if info.Mode()&need == need || !s.p.user.owns(info) {
		return nil, nil
	}
	if err := s.root.Chmod(name, info.Mode()|need); err != nil {
		return nil, err
	}
	return func() error { return s.root.Chmod(name, info.Mode()) }, nil
}

// errNotOwn: a file is not the agent's.
var errNotOwn = errors.New("the file is somebody else's")

// seen is a file's hash when it was so.
type seen struct {
	stamp stamp
	hash  string
}

// settledFor is how long a file was left alone when its stamp tells whether it
// has changed since: clocks of file systems tick slowly.
var settledFor = 2 * time.Second // tests change it

// hash returns a file's hash; with a tree, it is kept there. Error: errNotOwn.
func (s *space) hash(ctx context.Context, name string, info fs.FileInfo, tree string, hashes map[string]seen) (string, error) {
	now, known := stampOf(info)
	if old, ok := s.seen[name]; ok && known && old.stamp == now {
		_, err := os.Lstat(filepath.Join(s.p.contents(tree), old.hash))
		if tree == "" || err == nil {
			hashes[name] = old
			return old.hash, nil
		}
	}
	f, _, err := s.openFile(name)
	if errors.Is(err, workspace.ErrOutside) || errors.Is(err, fs.ErrPermission) {
		return "", errNotOwn
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash, err := s.p.keep(ctx, f, tree)
	if err == nil && known && time.Since(now.changed()) > settledFor {
		hashes[name] = seen{stamp: now, hash: hash}
	}
	return hash, err
}

// reader ends with its context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(b)
}

// keep returns a content's hash; with a tree, it is kept there.
func (p *Provider) keep(ctx context.Context, content io.ReadSeeker, tree string) (string, error) {
	hash, _, err := copyOf(ctx, io.Discard, content)
	if err != nil || tree == "" {
		return hash, err
	}
	if _, err := os.Lstat(filepath.Join(p.contents(tree), hash)); err == nil {
		return hash, nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(p.contents(tree), ".new-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())                  //nolint:errcheck // it is renamed, or of no use
	hash, size, err := copyOf(ctx, f, content) // which may have changed
	if err == nil {
		err = p.keepMore(tree, size)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	return hash, os.Rename(f.Name(), filepath.Join(p.contents(tree), hash))
}

// copyOf copies a content, and returns its hash and how many bytes it has.
func copyOf(ctx context.Context, to io.Writer, content io.Reader) (hash string, size int64, err error) {
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(to, h), &reader{ctx, content})
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// Restore implements workspace.Snapshots. One that broke off is to be done
// again.
func (s *space) Restore(ctx context.Context, text json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Err() != nil {
		return workspace.ErrGone
	}
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	defer s.recount()
	if err := s.restore(ctx, text); err != nil {
		return fmt.Errorf("local workspace: restore: %w", err)
	}
	return nil
}

func (s *space) restore(ctx context.Context, text json.RawMessage) error {
	want, contents := filetree.Tree{}, ""
	if text != nil {
		taken, err := s.p.parseSnapshot(text)
		if err != nil {
			return err
		}
		if taken.Tree != encoded(s.session.Root) {
			return fmt.Errorf("the snapshot is of another session tree: %w", workspace.ErrGone)
		}
		if want, _, err = s.p.load(taken); err != nil {
			return err
		}
		contents = s.p.contents(taken.Tree)
	}
	if err := s.p.unlockFiles(s.session); err != nil {
		return s.wrong(".", err)
	}
	if err := removeAll(ctx, s.root, private); err != nil {
		return err
	}
	if err := s.clear(ctx, want); err != nil {
		return err
	}
	have, err := s.scan(ctx, "")
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(want), filetree.Compare)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.bring(name, have[name], want[name], contents); err != nil {
			return s.wrong(name, err)
		}
	}
	// Folders that forbid changes to their owner come last.
	for _, name := range slices.Backward(names) {
		if node := want[name]; node.Mode.IsDir() {
			if err := s.root.Chmod(name, node.Mode.Perm()); err != nil {
				return s.wrong(name, err)
			}
		}
	}
	return s.sync(".", false)
}

// clear removes what is not wanted, or is something else, and lets the owner
// change all folders.
func (s *space) clear(ctx context.Context, want filetree.Tree) error {
	var extra []string
	err := s.walk(ctx, ".", true, func(name string, info fs.FileInfo) (bool, error) {
		if node, ok := want[name]; !ok || node.Mode.Type() != info.Mode().Type() {
			extra = append(extra, name)
		}
		if info.IsDir() && info.Mode()&0o700 != 0o700 {
			return true, s.root.Chmod(name, 0o700)
		}
		return true, nil
	})
	if errors.Is(err, workspace.ErrQuota) { // too much to be looked at
		return remover{ctx: ctx, top: s.root}.empty(s.root, ".")
	}
	for _, name := range extra {
		if err := removeAll(ctx, s.root, name); err != nil {
			return s.wrong(name, err)
		}
	}
	return err
}

// bring makes a name what it shall be.
func (s *space) bring(name string, have, want filetree.Node, contents string) error {
	switch {
	case want.Mode.IsDir():
		_, err := s.makeFolders(name)
		return err
	case want.Mode.Type() == fs.ModeSymlink:
		if have.Link == want.Link {
			return nil
		}
		if err := s.root.RemoveAll(name); err != nil {
			return err
		}
		if err := s.root.Symlink(want.Link, name); err != nil {
			return err
		}
		return s.p.user.ownLink(s.root, name)
	case have.Hash == want.Hash && have.Mode == want.Mode && have.Modified.Equal(want.Modified):
		return nil
	}
	content, err := os.Open(filepath.Join(contents, want.Hash))
	if err != nil {
		return err
	}
	defer content.Close()
	err = s.replace(name, want.Mode.Perm(), func(f *os.File) error {
		h := sha256.New()
		if _, err := io.Copy(io.MultiWriter(f, h), content); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != want.Hash {
			return errors.New("the snapshot's content is damaged")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.root.Chtimes(name, time.Time{}, want.Modified)
}

// Adopt implements workspace.Provider. Contents are linked, where that can be:
// they never change.
func (p *Provider) Adopt(ctx context.Context, to workspace.Session, text json.RawMessage) (json.RawMessage, error) {
	from, err := p.parseSnapshot(text)
	if err != nil {
		return nil, err
	}
	own := from
	own.Tree = encoded(to.Root)
	trees := []string{from.Tree, own.Tree}
	if err := p.enter(ctx, trees...); err != nil {
		return nil, err
	}
	err = p.leave(trees, func() error { return p.adopt(ctx, from, own, to.Root) })
	if err != nil {
		return nil, fmt.Errorf("local workspace: adopt: %w", err)
	}
	return json.Marshal(own)
}

// keepCopy keeps a file in a tree.
func (p *Provider) keepCopy(ctx context.Context, name, tree string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = p.keep(ctx, f, tree)
	return err
}

var link = os.Link // tests change it

func (p *Provider) adopt(ctx context.Context, from, own snapshot, root string) error {
	if _, _, err := p.load(own); !errors.Is(err, workspace.ErrGone) {
		return err // asked again
	}
	t, text, err := p.load(from)
	if err != nil {
		return err
	}
	if err := p.makeTree(root); err != nil {
		return err
	}
	source, target := p.contents(from.Tree), p.contents(own.Tree)
	defer p.recountKept(own.Tree)
	for _, node := range t {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if node.Hash == "" {
			continue
		}
		err := link(filepath.Join(source, node.Hash), filepath.Join(target, node.Hash))
		if errors.Is(err, syscall.EMLINK) { // it has as many names as the file system lets it
			err = p.keepCopy(ctx, filepath.Join(source, node.Hash), own.Tree)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := syncFolder(target); err != nil {
		return err
	}
	err = create(filepath.Join(p.folderOf(own), "snapshots", own.Snapshot), text)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
