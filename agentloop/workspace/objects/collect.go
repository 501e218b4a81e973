package objects

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// collectEvery is how often a tree's garbage is collected, while its
	// workspaces are used.
	collectEvery = 10 * time.Minute
	// collectFor bounds a collection; the next one continues.
	collectFor = time.Minute
)

// tidy begins to collect garbage, if the last time was long ago. Only
// Close waits for it.
func (w *space) tidy(k *kept) {
	if time.Since(k.collected) < min(collectEvery, w.p.opts.Grace) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.life.Err() != nil {
		return
	}
	k.collected = time.Now()
	w.tidying.Go(func() {
		ctx, cancel := context.WithTimeout(w.life, collectFor)
		defer cancel()
		_ = w.p.collect(ctx, w.session.Root) // what is left is for the next one
	})
}

// collect overwrites contents that neither heads nor snapshots have, if it is older than
// the grace. Heads are looked at before snapshots, see Take.
func (p *Provider) collect(ctx context.Context, root string) error {
	parts, now, err := p.listing(ctx, prefix(root)+partKind+">")
	if err != nil {
		return err
	}
	before := now.Add(-p.opts.Grace)
	needed := map[string]bool{}
	heads, err := p.subjects(ctx, prefix(root)+headKind+">")
	if err != nil {
		return err
	}
	for subject, n := range heads {
		id, _ := layout.Untoken(strings.TrimPrefix(subject, prefix(root)+headKind))
		w := &space{p: p, session: workspace.Session{Root: root, ID: id}}
		h, t, err := w.read(ctx)
		if err != nil {
			return err
		}
		if n > 1 {
			if _, err := p.erase(ctx, subject, h.sequence, before); err != nil {
				return err
			}
		}
		needed[h.manifest.Hash] = true
		for _, node := range t {
			needed[node.Hash] = true
		}
	}
	k, release, err := p.keptOf(ctx, root)
	if err != nil {
		return err
	}
	err = k.learn(ctx, p, root)
	maps.Copy(needed, k.contents)
	damaged := k.damaged
	release()
	if err != nil || damaged { // what a snapshot may need stays
		return err
	}
	for subject, n := range parts {
		hash, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix(root)+partKind), ".")
		switch {
		case !needed[hash]:
			_, err = p.erase(ctx, subject, 0, before)
		case n > 1: // stored more than once: readers take the last one
			m, lerr := p.last(ctx, subject)
			if err = lerr; err == nil {
				_, err = p.erase(ctx, subject, m.Sequence, before)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
