package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// maxTrees bounds of how many trees that nobody uses at the moment it is known what their
// snapshots keep.
const maxTrees = 64

// kept is what the snapshots of a tree keep, as far as this process has read
// them: they never change.
type kept struct {
	users int           // of it, and waiting for it; under Provider.mu
	used  time.Time     // last; under Provider.mu
	lock  chan struct{} // full while a caller uses the rest

	manifests map[string]bool
	contents  map[string]bool // manifests included
	bytes     int64
	damaged   bool // one can't be read: what it keeps is not known
}

// keptOf returns what is known of a tree, for exclusive use until release
// is called. Error: that of ctx.
func (p *Provider) keptOf(ctx context.Context, root string) (k *kept, release func(), err error) {
	p.mu.Lock()
	k = p.trees[root]
	if k == nil {
		p.forget(maxTrees - 1)
		k = &kept{lock: make(chan struct{}, 1)}
		p.trees[root] = k
	}
	k.users++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		k.users, k.used = k.users-1, time.Now()
	}
	select {
	case k.lock <- struct{}{}:
		return k, func() { <-k.lock; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, nil, context.Cause(ctx)
	}
}

// forget leaves at most so many of the trees that nobody uses, those that were used last.
// The caller has the lock.
func (p *Provider) forget(most int) {
	var idle []string
	for root, k := range p.trees {
		if k.users == 0 {
			idle = append(idle, root)
		}
	}
	slices.SortFunc(idle, func(a, b string) int { return p.trees[a].used.Compare(p.trees[b].used) })
	for _, root := range idle[:max(len(idle)-most, 0)] {
		delete(p.trees, root)
	}
}

// learn reads the snapshots that are not known yet. What it has read is known,
// also if it fails.
func (k *kept) learn(ctx context.Context, p *Provider, root string) error {
	at := prefix(root) + snapKind
	snaps, err := p.subjects(ctx, at+">")
	if err != nil {
		return err
	}
	for hash := range k.manifests {
		if snaps[at+hash] == 0 { // the tree has been removed
			k.manifests, k.contents, k.bytes, k.damaged = nil, nil, 0, false
			break
		}
	}
	for subject := range snaps {
		if k.manifests[strings.TrimPrefix(subject, at)] {
			continue
		}
		m, err := p.last(ctx, subject)
		if errors.Is(err, natsjs.ErrMsgNotFound) {
			continue
		}
		var manifest content
		if err == nil {
			err = json.Unmarshal(m.Data, &manifest)
		}
		if err != nil {
			return err
		}
		t, err := p.getTree(ctx, root, manifest)
		if err != nil && !errors.Is(err, errMissing) {
			return err
		}
		k.damaged = k.damaged || err != nil
		k.add(manifest, t)
	}
	return nil
}

func (k *kept) add(manifest content, t filetree.Tree) {
	if k.manifests == nil {
		k.manifests, k.contents = map[string]bool{}, map[string]bool{}
	}
	k.bytes += k.more(manifest, t)
	k.manifests[manifest.Hash] = true
	for c := range contents(manifest, t) {
		k.contents[c.Hash] = true
	}
}

// more is how many bytes a snapshot would keep that no other one does.
func (k *kept) more(manifest content, t filetree.Tree) (n int64) {
	for c := range contents(manifest, t) {
		if !k.contents[c.Hash] {
			n += filetree.Kept(c.Size)
		}
	}
	return n
}

// contents are what a snapshot consists of.
func contents(manifest content, t filetree.Tree) map[content]bool {
	all := map[content]bool{manifest: true}
	for _, node := range t {
		all[content{Hash: node.Hash, Size: node.Size}] = true
	}
	return all
}

// room reports whether there is room for one snapshot more. Error:
// workspace.ErrQuota.
func (k *kept) room(ctx context.Context, p *Provider, s snapshot, t filetree.Tree) error {
	if err := k.learn(ctx, p, s.Root); err != nil {
		return err
	}
	if most := filetree.MaxKept(p.opts.MaxBytes); k.bytes+k.more(s.Manifest, t) > most {
		return fmt.Errorf("%w: its snapshots keep %d bytes, %d are allowed", workspace.ErrQuota, k.bytes, most)
	}
	return nil
}
