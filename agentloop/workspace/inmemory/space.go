package inmemory

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// space is a workspace and its files.
type space struct {
	p       *Provider
	session workspace.Session
	gone    atomic.Bool

	// The provider's lock is for these.
	holders int
	idle    *list.Element // in Provider.idle, while there are no holders
	weight  int64

	mu   sync.Mutex // before the provider's
	tree filetree.Tree
}

// held is a space that is open.
type held struct {
	*space
	closed bool
}

// Close implements workspace.Workspace.
func (h *held) Close() error {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.holders--; h.holders == 0 && !h.gone.Load() {
		h.idle = h.p.idle.PushBack(h.space)
	}
	return nil
}

func (s *space) FS() workspace.FS               { return s }
func (s *space) Shell() workspace.Shell         { return nil }
func (s *space) Code() workspace.Code           { return nil }
func (s *space) Snapshots() workspace.Snapshots { return nil }

// weight is what a workspace with those files counts.
func weight(t filetree.Tree) int64 {
	n := filetree.Kept(0)
	for _, node := range t {
		n += filetree.Kept(node.Size)
	}
	return n
}

// weigh has the workspace count that many bytes.
func (s *space) weigh(bytes int64) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.weigh(s, bytes)
}

// with calls f with the tree, if the names and ctx are good.
func (s *space) with(ctx context.Context, f func(filetree.Tree) error, names ...string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, name := range names {
		if err := workspace.CheckName(name); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone.Load() {
		return workspace.ErrGone
	}
	return f(s.tree)
}

// ReadFile implements workspace.FS.
func (s *space) ReadFile(ctx context.Context, name string) (data []byte, err error) {
	err = s.with(ctx, func(t filetree.Tree) error {
		node, err := t.Get(name)
		data = bytes.Clone(node.Data)
		return err
	}, name)
	return data, err
}

// WriteFile implements workspace.FS.
func (s *space) WriteFile(ctx context.Context, name string, data []byte) error {
	if len(data) > workspace.MaxFile {
		return fmt.Errorf("%s: %w: %d bytes, %d are allowed", name, workspace.ErrTooLarge, len(data), workspace.MaxFile)
	}
	size := int64(len(data))
	return s.change(ctx, func(t filetree.Tree) error {
		old, replaced := t[name]
		if t.Size()-old.Size+size > s.p.maxBytes {
			return fmt.Errorf("%s: %w: %d bytes are allowed", name, workspace.ErrQuota, s.p.maxBytes)
		}
		next := weight(t) + filetree.Kept(size)
		if replaced {
			next -= filetree.Kept(old.Size)
		}
		if err := s.weigh(next); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return t.Put(name, filetree.Node{Mode: 0o644, Size: size, Modified: time.Now().UTC(), Data: append([]byte{}, data...)})
	}, name)
}

// change is with for what changes the tree.
func (s *space) change(ctx context.Context, f func(filetree.Tree) error, names ...string) error {
	return s.with(ctx, func(t filetree.Tree) error {
		err := f(t)
		_ = s.weigh(weight(t)) // at most what it counts already
		return err
	}, names...)
}

// Remove implements workspace.FS.
func (s *space) Remove(ctx context.Context, name string) error {
	return s.change(ctx, func(t filetree.Tree) error { return t.Remove(name) }, name)
}

// Rename implements workspace.FS.
func (s *space) Rename(ctx context.Context, from, to string) error {
	return s.change(ctx, func(t filetree.Tree) error { return t.Rename(from, to) }, from, to)
}

// List implements workspace.FS.
func (s *space) List(ctx context.Context, name string, recursive bool) (entries []workspace.Entry, truncated bool, err error) {
	err = s.with(ctx, func(t filetree.Tree) (err error) {
		entries, truncated, err = t.List(name, recursive)
		return err
	}, name)
	return entries, truncated, err
}

// Stat implements workspace.FS.
func (s *space) Stat(ctx context.Context, name string) (e workspace.Entry, err error) {
	err = s.with(ctx, func(t filetree.Tree) (err error) {
		e, err = t.Stat(name)
		return err
	}, name)
	return e, err
}
