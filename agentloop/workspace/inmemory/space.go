package inmemory

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// space is a workspace and its files.
type space struct {
	maxBytes int64

	mu   sync.Mutex
	tree filetree.Tree // nil: it is removed
}

func (s *space) FS() workspace.FS               { return s }
func (s *space) Shell() workspace.Shell         { return nil }
func (s *space) Code() workspace.Code           { return nil }
func (s *space) Snapshots() workspace.Snapshots { return nil }
func (s *space) Close() error                   { return nil }

func (s *space) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree = nil
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
	if s.tree == nil {
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
	return s.with(ctx, func(t filetree.Tree) error {
		if t.Size()-t[name].Size+int64(len(data)) > s.maxBytes {
			return fmt.Errorf("%s: %w: %d bytes are allowed", name, workspace.ErrQuota, s.maxBytes)
		}
		return t.Put(name, filetree.Node{
			Mode: 0o644, Size: int64(len(data)), Modified: time.Now().UTC(), Data: append([]byte{}, data...),
		})
	}, name)
}

// Remove implements workspace.FS.
func (s *space) Remove(ctx context.Context, name string) error {
	return s.with(ctx, func(t filetree.Tree) error { return t.Remove(name) }, name)
}

// Rename implements workspace.FS.
func (s *space) Rename(ctx context.Context, from, to string) error {
	return s.with(ctx, func(t filetree.Tree) error { return t.Rename(from, to) }, from, to)
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
