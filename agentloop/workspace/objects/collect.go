package objects

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// collectFor bounds a collection; the next one continues.
const collectFor = time.Minute

// Collect implements workspace.Collector.
func (p *Provider) Collect(ctx context.Context, root string) error {
	within, cancel := context.WithTimeout(ctx, collectFor)
	defer cancel()
	err := p.collect(within, root)
	if errors.Is(err, workspace.ErrGone) || ctx.Err() == nil && within.Err() != nil {
		return nil // it is being removed, or what is left is for the next one
	}
	if err != nil {
		return fmt.Errorf("objects: collect: %w", err)
	}
	return nil
}

// collect overwrites contents that neither heads nor snapshots have, if it is older than
// the grace. Heads are looked at before snapshots, see Take. A tree without garbage is
// looked at again when its messages have changed.
func (p *Provider) collect(ctx context.Context, root string) error {
	all, now, err := p.listing(ctx, prefix(root)+">")
	if err != nil {
		return err
	}
	state := p.stateOf(all)
	p.mu.Lock()
	clean := p.clean[root] == state
	if !clean {
		delete(p.clean, root) // a collection that breaks off could bring the state back, with garbage
	}
	p.mu.Unlock()
	if clean {
		return nil
	}
	before, garbage := now.Add(-p.opts.Grace), false
	erase := func(subject string, below uint64) error {
		garbage = true
		_, err := p.erase(ctx, subject, below, before)
		return err
	}
	needed, heads := map[string]bool{}, map[string]uint64{} // the sequences of heads
	for subject := range all {
		token, is := strings.CutPrefix(subject, prefix(root)+headKind)
		if !is {
			continue
		}
		id, _ := layout.Untoken(token)
		w := &space{p: p, session: workspace.Session{Root: root, ID: id}}
		h, t, err := w.read(ctx)
		if err != nil {
			return err
		}
		heads[subject] = h.sequence
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
	for subject, n := range all {
		part, is := strings.CutPrefix(subject, prefix(root)+partKind)
		if !is {
			continue
		}
		hash, _, _ := strings.Cut(part, ".")
		switch {
		case !needed[hash]:
			err = erase(subject, 0)
		case n > 1: // stored more than once: readers take the last one
			m, lerr := p.last(ctx, subject)
			if err = lerr; err == nil {
				err = erase(subject, m.Sequence)
			}
		}
		if err != nil {
			return err
		}
	}
	for subject, sequence := range heads { // last: until then the state tells that there may be garbage
		if all[subject] > 1 {
			if err := erase(subject, sequence); err != nil {
				return err
			}
		}
	}
	if !garbage {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clean[root] = state
	}
	return nil
}

// stateOf tells states of a tree's messages apart.
func (p *Provider) stateOf(all map[string]uint64) (state uint64) {
	for subject, n := range all {
		state += n * maphash.String(p.seed, subject)
	}
	return state
}
