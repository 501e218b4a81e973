package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
	"github.com/helixd/helixd/eventlog"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Copy yields the workspaces and snapshots of the trees for which has returns true, for a
// backup. Each is as it was at one moment, while its sessions may continue. Garbage is left
// out.
func Copy(ctx context.Context, nc *nats.Conn, has func(ctx context.Context, root string) (bool, error)) iter.Seq2[eventlog.CopiedItem, error] {
	return func(yield func(eventlog.CopiedItem, error) bool) {
		c := &copying{ctx: ctx, yield: yield}
		if err := c.all(nc, has); err != nil && !c.stopped {
			yield(eventlog.CopiedItem{}, fmt.Errorf("objects: copy: %w", err))
		}
	}
}

// errStopped: the reader wants no more.
var errStopped = errors.New("objects: stopped")

// copying is a copy of all trees.
type copying struct {
	ctx     context.Context
	yield   func(eventlog.CopiedItem, error) bool
	stopped bool
	p       *Provider
	root    string          // of the present tree
	copied  map[string]bool // contents of the tree, by hash
}

func (c *copying) all(nc *nats.Conn, has func(ctx context.Context, root string) (bool, error)) error {
	var err error
	if c.p, err = existing(c.ctx, nc); err != nil || c.p == nil {
		return err
	}
	roots, err := c.p.rootsOf(c.ctx, subjects+"*."+headKind+"*", subjects+"*."+snapKind+"*")
	if err != nil {
		return err
	}
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		is, err := has(c.ctx, root)
		if err == nil && is {
			err = c.tree(root)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copying) item(subject string, data []byte) error {
	if c.stopped = !c.yield(eventlog.CopiedItem{Key: strings.TrimPrefix(subject, subjects), Data: data}, nil); c.stopped {
		return errStopped
	}
	return nil
}

// tree copies a session tree's workspaces and snapshots: contents before the messages that
// refer to them.
func (c *copying) tree(root string) error {
	c.root, c.copied = root, map[string]bool{}
	at := prefix(root)
	heads, err := c.p.subjects(c.ctx, at+headKind+">")
	if err != nil {
		return err
	}
	snaps, err := c.p.subjects(c.ctx, at+snapKind+">")
	if err != nil || len(heads)+len(snaps) == 0 {
		return err
	}
	if err := c.item(at+treeKind, nil); err != nil {
		return err
	}
	for subject := range heads {
		id, _ := layout.Untoken(strings.TrimPrefix(subject, at+headKind))
		if err := c.head(workspace.Session{Root: root, ID: id}); err != nil {
			return err
		}
	}
	for subject := range snaps {
		if err := c.snapshot(subject); err != nil {
			return err
		}
	}
	return nil
}

// head copies a workspace. Contents may be missing if it has changed since its head was
// read: then it is read again. Those that are missing without a change are damage, which the
// copy has, too.
func (c *copying) head(s workspace.Session) error {
	w := c.p.space(s)
	for {
		h, err := w.head(c.ctx)
		if errors.Is(err, workspace.ErrGone) {
			return nil
		}
		var whole bool
		if err == nil {
			whole, err = c.manifest(h.manifest)
		}
		if err != nil {
			return err
		}
		now := h
		if !whole {
			if now, err = w.head(c.ctx); err != nil && !errors.Is(err, workspace.ErrGone) {
				return err
			}
		}
		if now.sequence == h.sequence {
			text, err := json.Marshal(h.manifest)
			if err != nil {
				return err
			}
			return c.item(headSubject(s), text)
		}
	}
}

// snapshot copies a snapshot, which never changes.
func (c *copying) snapshot(subject string) error {
	m, err := c.p.last(c.ctx, subject)
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return nil
	}
	var manifest content
	if err == nil {
		err = json.Unmarshal(m.Data, &manifest)
	}
	if err == nil {
		_, err = c.manifest(manifest)
	}
	if err != nil {
		return err
	}
	return c.item(subject, m.Data)
}

// manifest copies a manifest and what it refers to, and reports whether all of it is there.
func (c *copying) manifest(manifest content) (whole bool, err error) {
	t, err := c.p.getTree(c.ctx, c.root, manifest)
	if errors.Is(err, errMissing) {
		t, err = filetree.Tree{}, nil
	}
	if err != nil {
		return false, err
	}
	whole = true
	for content := range contents(manifest, t) {
		there, err := c.content(content)
		if err != nil {
			return false, err
		}
		whole = whole && there
	}
	return whole, nil
}

// content copies a content part by part, and reports whether all parts are there.
func (c *copying) content(one content) (whole bool, err error) {
	if c.copied[one.Hash] {
		return true, nil
	}
	for i := range one.parts() {
		m, err := c.p.last(c.ctx, one.subject(c.root, i))
		if errors.Is(err, natsjs.ErrMsgNotFound) {
			return false, nil
		}
		if err == nil {
			err = c.item(m.Subject, m.Data)
		}
		if err != nil {
			return false, err
		}
	}
	c.copied[one.Hash] = true
	return true, nil
}

// existing is Open for readers; nil if there is no stream.
func existing(ctx context.Context, nc *nats.Conn) (*Provider, error) {
	p := newProvider(nc)
	var err error
	if p.js, err = newJetStream(nc, patience); err != nil {
		return nil, err
	}
	err = logjs.Settle(ctx, nc, func(ctx context.Context) (err error) {
		p.stream, err = p.js.Stream(ctx, Stream)
		return err
	})
	if errors.Is(err, natsjs.ErrStreamNotFound) {
		return nil, nil
	}
	return p, err
}

// RootOf returns the root of the session tree to which an item of [Copy] belongs; false: it
// is not one.
func RootOf(key string) (root string, ok bool) {
	parts := strings.Split(key, ".")
	kinds := []string{treeKind, strings.TrimSuffix(headKind, "."), strings.TrimSuffix(snapKind, "."), strings.TrimSuffix(partKind, ".")}
	if len(parts) < 2 || len(parts) > 4 || !slices.Contains(kinds, parts[1]) || slices.ContainsFunc(parts[2:], badToken) {
		return "", false
	}
	return layout.Untoken(parts[0])
}

// badToken reports whether a part of a key can't be one of a subject.
func badToken(s string) bool { _, ok := layout.Untoken(s); return !ok }

// Fill stores an item of [Copy]. Nobody may use the workspaces until all are stored.
func (p *Provider) Fill(ctx context.Context, item eventlog.CopiedItem) error {
	if _, ok := RootOf(item.Key); !ok {
		return fmt.Errorf("objects: %q is not the key of a part of a workspace", item.Key)
	}
	if _, err := p.publish(ctx, &nats.Msg{Subject: subjects + item.Key, Data: item.Data}); err != nil {
		return fmt.Errorf("objects: fill: %w", err)
	}
	return nil
}
