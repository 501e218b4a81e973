package objects

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
)

const (
	// collectEvery is how often an open workspace collects its tree's garbage.
	collectEvery = 10 * time.Minute
	// collectFor bounds a collection; the next one goes on.
	collectFor = 5 * time.Second
)

// tidy collects garbage, if the last time was long ago. A snapshot does not
// fail for it.
func (w *space) tidy(ctx context.Context) {
	w.mu.Lock()
	due := time.Since(w.collected) > min(collectEvery, w.p.opts.Grace)
	if due {
		w.collected = time.Now()
	}
	w.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, collectFor)
	defer cancel()
	_ = w.p.collect(ctx, w.session.Root)
}

// collect overwrites what neither heads nor snapshots have, if it is older than
// the grace. Heads are looked at before snapshots, see Take.
func (p *Provider) collect(ctx context.Context, root string) error {
	before := time.Now().Add(-p.opts.Grace)
	parts, err := p.subjects(ctx, prefix(root)+partKind+">")
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	heads, err := p.subjects(ctx, prefix(root)+headKind+">")
	if err != nil {
		return err
	}
	for subject, n := range heads {
		id, _ := logjs.Untoken(strings.TrimPrefix(subject, prefix(root)+headKind))
		w := &space{p: p, session: workspace.Session{Root: root, ID: id}}
		h, t, err := w.read(ctx)
		if err != nil {
			return err
		}
		if n > 1 {
			if err := p.eraseBelow(ctx, subject, h.sequence, before); err != nil {
				return err
			}
		}
		needed[h.manifest.Hash] = true
		for _, node := range t {
			needed[node.Hash] = true
		}
	}
	snaps, err := p.subjects(ctx, prefix(root)+snapKind+">")
	if err != nil {
		return err
	}
	sizes, err := p.sizes(ctx, snaps)
	if err != nil {
		return err
	}
	for _, manifest := range sizes {
		t, err := p.getTree(ctx, root, manifest)
		if err != nil {
			return err
		}
		needed[manifest.Hash] = true
		for _, node := range t {
			needed[node.Hash] = true
		}
	}
	for subject, n := range parts {
		hash, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix(root)+partKind), ".")
		switch {
		case !needed[hash]:
			_, err = p.erase(ctx, subject, before)
		case n > 1: // stored more than once: readers take the last one
			m, lerr := p.last(ctx, subject)
			if err = lerr; err == nil {
				err = p.eraseBelow(ctx, subject, m.Sequence, before)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sizes returns the manifests of snapshots.
func (p *Provider) sizes(ctx context.Context, snaps map[string]uint64) (manifests []content, err error) {
	for subject := range snaps {
		m, err := p.last(ctx, subject)
		if err != nil {
			return nil, err
		}
		var c content
		if err := json.Unmarshal(m.Data, &c); err != nil {
			return nil, err
		}
		manifests = append(manifests, c)
	}
	return manifests, nil
}

// eraseBelow overwrites a subject's messages before a sequence and a time.
func (p *Provider) eraseBelow(ctx context.Context, subject string, sequence uint64, before time.Time) error {
	for at := uint64(1); ; at++ {
		m, err := p.next(ctx, subject, at)
		if err != nil {
			return err
		}
		at = m.Sequence
		if m.Sequence >= sequence {
			return nil
		}
		if m.Time.Before(before) {
			if err := p.overwrite(ctx, m.Sequence); err != nil {
				return err
			}
		}
	}
}
