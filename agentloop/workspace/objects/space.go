package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// space is a session's workspace.
type space struct {
	p       *Provider
	session workspace.Session

	mu       sync.Mutex
	manifest content       // of tree
	tree     filetree.Tree // as read or written last; never changed
}

func (p *Provider) space(s workspace.Session) *space {
	return &space{p: p, session: s}
}

func (w *space) FS() workspace.FS               { return w }
func (w *space) Shell() workspace.Shell         { return nil }
func (w *space) Code() workspace.Code           { return nil }
func (w *space) Snapshots() workspace.Snapshots { return w }
func (w *space) Close() error                   { return nil }

// head is which manifest a session has now.
type head struct {
	manifest content
	sequence uint64
}

// head returns the session's. Error: workspace.ErrGone.
func (w *space) head(ctx context.Context) (head, error) {
	m, err := w.p.last(ctx, headSubject(w.session))
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return head{}, workspace.ErrGone
	}
	if err != nil {
		return head{}, err
	}
	if len(m.Data) == 0 { // it is being removed
		return head{}, workspace.ErrGone
	}
	h := head{sequence: m.Sequence}
	return h, json.Unmarshal(m.Data, &h.manifest)
}

// read returns what there is now. The tree is not to be changed.
func (w *space) read(ctx context.Context) (head, filetree.Tree, error) {
	for {
		h, err := w.head(ctx)
		if err != nil {
			return h, nil, err
		}
		w.mu.Lock()
		known, t := w.manifest, w.tree
		w.mu.Unlock()
		if t != nil && known == h.manifest {
			return h, t, nil
		}
		t, err = w.p.getTree(ctx, w.session.Root, h.manifest)
		if err == nil {
			w.remember(h.manifest, t)
			return h, t, nil
		}
		if err = w.still(ctx, h, err); err != nil {
			return h, nil, err
		}
	}
}

func (w *space) remember(manifest content, t filetree.Tree) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.manifest, w.tree = manifest, t
}

// still is err if the head is the same: its contents must exist. Otherwise it was
// replaced, and its contents were collected.
func (w *space) still(ctx context.Context, h head, err error) error {
	if !errors.Is(err, errMissing) {
		return err
	}
	now, herr := w.head(ctx)
	if herr != nil {
		return herr
	}
	if now.sequence == h.sequence {
		return err
	}
	return nil
}

// change replaces the manifest by what f makes of a copy, which it may do more
// than once.
func (w *space) change(ctx context.Context, f func(old, t filetree.Tree) error) (err error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	stored := false
	defer func() {
		if stored && errors.Is(err, workspace.ErrGone) { // its tree was removed meanwhile: what came late is to be found
			rest, cancel := limited(context.WithoutCancel(ctx))
			defer cancel()
			err = errors.Join(err, w.p.noteTree(rest, w.session.Root))
		}
	}()
	for {
		h, old, err := w.read(ctx)
		if err != nil {
			return err
		}
		t := maps.Clone(old)
		if t == nil {
			t = filetree.Tree{}
		}
		stored = true
		if err := f(old, t); err != nil {
			return err
		}
		manifest, err := w.p.putTree(ctx, w.session.Root, t)
		if err == nil {
			err = w.p.putHead(ctx, w.session, h.sequence, manifest)
		}
		if err == nil {
			w.remember(manifest, t)
		}
		if !errors.Is(err, errChanged) {
			return err
		}
		if now, err := w.head(ctx); err != nil || now.manifest == manifest {
			return err // it was obeyed, and the answer lost
		}
	}
}

func checked(names ...string) error {
	for _, name := range names {
		if err := workspace.CheckName(name); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile implements workspace.FS.
func (w *space) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if err := checked(name); err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	for {
		h, t, err := w.read(ctx)
		if err != nil {
			return nil, err
		}
		node, err := t.Get(name)
		if err != nil {
			return nil, err
		}
		data, err := w.p.get(ctx, w.session.Root, content{Hash: node.Hash, Size: node.Size})
		if err == nil {
			return data, nil
		}
		if err = w.still(ctx, h, err); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
}

// WriteFile implements workspace.FS.
func (w *space) WriteFile(ctx context.Context, name string, data []byte) error {
	if err := checked(name); err != nil {
		return err
	}
	if len(data) > workspace.MaxFile {
		return fmt.Errorf("%s: %w: %d bytes, %d are allowed", name, workspace.ErrTooLarge, len(data), workspace.MaxFile)
	}
	c := contentOf(data)
	node := filetree.Node{Mode: 0o644, Size: c.Size, Hash: c.Hash, Modified: time.Now().UTC().Round(0)} // as it is read back
	stored := false
	return w.change(ctx, func(old, t filetree.Tree) error {
		if err := t.Put(name, node); err != nil {
			return err
		}
		if t.Size() > w.p.opts.MaxBytes && t.Size() > old.Size() {
			return fmt.Errorf("%s: %w: %d bytes are allowed", name, workspace.ErrQuota, w.p.opts.MaxBytes)
		}
		if stored || has(old, c) {
			return nil
		}
		_, err := w.p.put(ctx, w.session.Root, data)
		stored = err == nil
		return err
	})
}

// has reports whether a tree refers to a content: then it is there.
func has(t filetree.Tree, c content) bool {
	for _, node := range t {
		if node.Hash == c.Hash {
			return true
		}
	}
	return false
}

// Remove implements workspace.FS.
func (w *space) Remove(ctx context.Context, name string) error {
	if err := checked(name); err != nil {
		return err
	}
	return w.change(ctx, func(_, t filetree.Tree) error { return t.Remove(name) })
}

// Rename implements workspace.FS.
func (w *space) Rename(ctx context.Context, from, to string) error {
	if err := checked(from, to); err != nil {
		return err
	}
	return w.change(ctx, func(_, t filetree.Tree) error { return t.Rename(from, to) })
}

// List implements workspace.FS.
func (w *space) List(ctx context.Context, name string, recursive bool) ([]workspace.Entry, bool, error) {
	if err := checked(name); err != nil {
		return nil, false, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	_, t, err := w.read(ctx)
	if err != nil {
		return nil, false, err
	}
	return t.List(name, recursive)
}

// Stat implements workspace.FS.
func (w *space) Stat(ctx context.Context, name string) (workspace.Entry, error) {
	if err := checked(name); err != nil {
		return workspace.Entry{}, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	_, t, err := w.read(ctx)
	if err != nil {
		return workspace.Entry{}, err
	}
	return t.Stat(name)
}
