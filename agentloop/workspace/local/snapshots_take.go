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
	release, err := s.useAlone(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	var taken snapshot
	_, err = s.scan(ctx, func(t filetree.Tree) (err error) {
		taken, err = s.keep(ctx, t)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("local workspace: snapshot: %w", err)
	}
	return json.Marshal(taken)
}

// keep stores a snapshot with its contents. It checks first that there is room for all of it: contents that
// no snapshot needs would count as long as the tree is there.
func (s *space) keep(ctx context.Context, t filetree.Tree) (taken snapshot, err error) {
	taken, text, err := s.named(t)
	if err != nil {
		return taken, err
	}
	missing, size := s.missing(t)
	if _, err := os.Lstat(s.p.manifest(taken)); err == nil && len(missing) == 0 {
		return taken, nil
	}
	if err := s.p.keepMore(taken.Tree, size+filetree.Kept(int64(len(text)))); err != nil {
		return taken, err
	}
	defer func() {
		if err != nil {
			s.p.recountKept(taken.Tree)
		}
	}()
	if err := s.keepContents(ctx, t, missing); err != nil {
		return taken, err
	}
	if taken, text, err = s.named(t); err != nil { // again: a file may have changed meanwhile
		return taken, err
	}
	if err := syncFolder(s.p.contents(taken.Tree)); err != nil {
		return taken, err
	}
	if err := create(s.p.manifest(taken), text); err != nil && !errors.Is(err, fs.ErrExist) {
		return taken, err
	}
	return taken, nil
}

// named returns a snapshot, and what is in its file.
func (s *space) named(t filetree.Tree) (snapshot, []byte, error) {
	text, err := json.Marshal(t)
	sum := sha256.Sum256(text)
	return snapshot{Host: s.p.host, Tree: encoded(s.session.Root), Snapshot: hex.EncodeToString(sum[:])}, text, err
}

// missing returns the files whose contents no snapshot of the tree keeps, sorted, and how many bytes those count.
func (s *space) missing(t filetree.Tree) (names []string, size int64) {
	fresh := map[string]bool{}
	for name, node := range t {
		if node.Hash == "" || s.p.keeps(node.Hash, s.session.Root) {
			continue
		}
		names = append(names, name)
		if !fresh[node.Hash] {
			fresh[node.Hash] = true
			size += filetree.Kept(node.Size)
		}
	}
	slices.Sort(names)
	return names, size
}

// keepContents keeps files. One that has changed since it was looked at is kept as it is.
func (s *space) keepContents(ctx context.Context, t filetree.Tree, names []string) error {
	for _, name := range names {
		node := t[name]
		if s.p.keeps(node.Hash, s.session.Root) { // another file has the same content
			continue
		}
		f, err := s.openOwn(name)
		if errors.Is(err, errNotOwn) {
			delete(t, name)
			continue
		}
		if err == nil {
			node.Hash, node.Size, err = s.p.keep(ctx, f, encoded(s.session.Root))
			f.Close()
		}
		if err != nil {
			return s.wrong(name, err)
		}
		t[name] = node
	}
	return nil
}

// scan returns what there is, when then has had it while all files can be read. What is
// no file of the agent's, or has a name that is not UTF-8, is left out.
func (s *space) scan(ctx context.Context, then func(filetree.Tree) error) (t filetree.Tree, err error) {
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
			node.Hash, err = s.hash(ctx, name, info, hashes)
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
	if err == nil && then != nil {
		err = then(t)
	}
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
var errNotOwn = errors.New("the file has another owner")

// seen is a file's hash when it was so.
type seen struct {
	stamp stamp
	hash  string
}

// settledFor is how long a file was left alone when its stamp says whether it
// has changed since: clocks of file systems tick slowly.
var settledFor = 2 * time.Second // tests change it

// hash returns a file's hash. Error: errNotOwn.
func (s *space) hash(ctx context.Context, name string, info fs.FileInfo, hashes map[string]seen) (string, error) {
	now, known := stampOf(info)
	if old, ok := s.seen[name]; ok && known && old.stamp == now {
		hashes[name] = old
		return old.hash, nil
	}
	f, err := s.openOwn(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash, _, err := copyOf(ctx, io.Discard, f)
	if err == nil && known && time.Since(now.changed()) > settledFor {
		hashes[name] = seen{stamp: now, hash: hash}
	}
	return hash, err
}

// openOwn opens a file of the agent's. Error: errNotOwn.
func (s *space) openOwn(name string) (*os.File, error) {
	f, _, err := s.openFile(name)
	if errors.Is(err, workspace.ErrOutside) || errors.Is(err, fs.ErrPermission) {
		return nil, errNotOwn
	}
	return f, err
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

// keeps reports whether a content is kept in a session's tree.
func (p *Provider) keeps(hash, root string) bool {
	_, err := os.Lstat(filepath.Join(p.contents(encoded(root)), hash))
	return err == nil
}

// keep keeps a content in a tree, and returns its hash and how many bytes it has.
func (p *Provider) keep(ctx context.Context, content io.Reader, tree string) (hash string, size int64, err error) {
	f, err := os.CreateTemp(p.contents(tree), ".new-*")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is renamed, or of no use
	hash, size, err = copyOf(ctx, f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", 0, err
	}
	return hash, size, os.Rename(f.Name(), filepath.Join(p.contents(tree), hash))
}

// copyOf copies a content, and returns its hash and how many bytes it has.
func copyOf(ctx context.Context, to io.Writer, content io.Reader) (hash string, size int64, err error) {
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(to, h), &reader{ctx, content})
	return hex.EncodeToString(h.Sum(nil)), size, err
}
