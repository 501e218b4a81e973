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
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

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

// settledFor is how long a file was left alone when its stamp says whether it
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
