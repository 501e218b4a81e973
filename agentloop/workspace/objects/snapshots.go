package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// snapshot is what the provider says of one: which manifest, of which tree.
type snapshot struct {
	Root     string  `json:"root"`
	Manifest content `json:"manifest"`
}

func parseSnapshot(text json.RawMessage) (s snapshot, err error) {
	if err := json.Unmarshal(text, &s); err != nil || s.Root == "" || len(s.Manifest.Hash) != len(contentOf(nil).Hash) {
		return s, fmt.Errorf("objects: this is not a snapshot: %.100s", text)
	}
	return s, nil
}

func (s snapshot) subject() string { return prefix(s.Root) + snapKind + s.Manifest.Hash }

// kept reports whether the snapshot is there. Error: workspace.ErrGone.
func (p *Provider) kept(ctx context.Context, s snapshot) error {
	_, err := p.last(ctx, s.subject())
	if errors.Is(err, natsjs.ErrMsgNotFound) {
		return fmt.Errorf("snapshot: %w", workspace.ErrGone)
	}
	return err
}

// keep stores a snapshot's message, if it is not there; fresh is its sequence
// if it was not. Error: workspace.ErrQuota.
func (k *kept) keep(ctx context.Context, p *Provider, s snapshot, t filetree.Tree) (fresh uint64, err error) {
	if err := p.kept(ctx, s); !errors.Is(err, workspace.ErrGone) {
		return 0, err
	}
	if err := k.room(ctx, p, s, t); err != nil {
		return 0, err
	}
	text, err := json.Marshal(s.Manifest)
	if err != nil {
		return 0, err
	}
	return p.publish(ctx, &nats.Msg{Subject: s.subject(), Data: text})
}

// Take implements workspace.Snapshots.
func (w *space) Take(ctx context.Context) (json.RawMessage, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	text, err := w.take(ctx)
	if err != nil {
		return nil, fmt.Errorf("objects: snapshot: %w", err)
	}
	return text, nil
}

func (w *space) take(ctx context.Context) (json.RawMessage, error) {
	k, release, err := w.p.keptOf(ctx, w.session.Root)
	if err != nil {
		return nil, err
	}
	defer release()
	for {
		h, t, err := w.read(ctx)
		if err != nil {
			return nil, err
		}
		s := snapshot{Root: w.session.Root, Manifest: h.manifest}
		fresh, err := k.keep(ctx, w.p, s, t)
		if err != nil {
			return nil, err
		}
		// A collection looks at heads before it looks at snapshots. If the head
		// is the same still, it has seen one of the two.
		now, err := w.head(ctx)
		if err == nil && now.sequence == h.sequence {
			if fresh > 0 {
				k.add(h.manifest, t)
			}
			return json.Marshal(s)
		}
		if fresh > 0 {
			err = errors.Join(err, w.p.overwrite(ctx, fresh))
		}
		if err != nil {
			return nil, err
		}
	}
}

// Restore implements workspace.Snapshots.
func (w *space) Restore(ctx context.Context, text json.RawMessage) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := w.restore(ctx, text); err != nil {
		return fmt.Errorf("objects: restore: %w", err)
	}
	return nil
}

// restore does not look at what there is: it may be damaged.
func (w *space) restore(ctx context.Context, text json.RawMessage) error {
	s := snapshot{Root: w.session.Root}
	var err error
	if text == nil {
		s.Manifest, err = w.putNothing(ctx)
	} else {
		s, err = parseSnapshot(text)
	}
	if err != nil {
		return err
	}
	if s.Root != w.session.Root {
		return fmt.Errorf("the snapshot is of another session tree: %w", workspace.ErrGone)
	}
	for {
		h, err := w.head(ctx)
		if err == nil && text != nil {
			err = w.p.kept(ctx, s)
		}
		if err != nil || h.manifest == s.Manifest {
			return err
		}
		if err = w.p.putHead(ctx, w.session, h.sequence, s.Manifest); !errors.Is(err, errChanged) {
			return err
		}
	}
}

// Adopt implements workspace.Provider.
func (p *Provider) Adopt(ctx context.Context, to workspace.Session, text json.RawMessage) (json.RawMessage, error) {
	from, err := parseSnapshot(text)
	if err != nil {
		return nil, err
	}
	own := snapshot{Root: to.Root, Manifest: from.Manifest}
	if err := p.kept(ctx, own); !errors.Is(err, workspace.ErrGone) {
		if err != nil {
			return nil, fmt.Errorf("objects: adopt: %w", err)
		}
		return json.Marshal(own) // asked again
	}
	if err := p.kept(ctx, from); err != nil {
		return nil, fmt.Errorf("objects: adopt: %w", err)
	}
	t, err := p.getTree(ctx, from.Root, from.Manifest)
	if err != nil {
		return nil, fmt.Errorf("objects: adopt: %w", err)
	}
	all := contents(from.Manifest, t)
	if err := p.copyContents(ctx, to.Root, from.Root, all); err != nil {
		return nil, fmt.Errorf("objects: adopt: %w", err)
	}
	k, release, err := p.keptOf(ctx, to.Root)
	if err != nil {
		return nil, err
	}
	defer release()
	fresh, err := k.keep(ctx, p, own, t)
	if err == nil {
		err = p.whole(ctx, own, all)
	}
	if err != nil && fresh > 0 {
		err = errors.Join(err, p.overwrite(ctx, fresh))
	}
	if err != nil {
		return nil, fmt.Errorf("objects: adopt: %w", err)
	}
	return json.Marshal(own)
}

// whole reports whether the contents of a snapshot are there: what an earlier try had copied
// may have been removed meanwhile, as left by a fork that never came to be. A removal that
// comes to the contents later removes the snapshot, too. Error: errMissing.
func (p *Provider) whole(ctx context.Context, s snapshot, all map[content]bool) error {
	there, err := p.subjects(ctx, prefix(s.Root)+partKind+">")
	if err != nil {
		return err
	}
	for c := range all {
		if !c.among(there, s.Root) {
			return errMissing
		}
	}
	return nil
}

// copyContents copies contents to another tree, but for those that are there:
// when it is asked again, it continues.
func (p *Provider) copyContents(ctx context.Context, to, from string, all map[content]bool) error {
	if err := p.noteTree(ctx, to); err != nil {
		return err
	}
	first, err := p.next(ctx, prefix(to)+treeKind, 1)
	if err != nil {
		return err
	}
	started := time.Now()
	there, now, err := p.listing(ctx, prefix(to)+partKind+">")
	if err != nil {
		return err
	}
	age := now.Sub(first.Time) // by the server's clock
	if age >= p.opts.Grace/2 {
		age, there = 0, nil
	}
	for c := range all {
		if c.among(there, to) {
			continue
		}
		data, err := p.get(ctx, from, c)
		if err == nil {
			_, err = p.put(ctx, to, data)
		}
		if err != nil {
			return err
		}
	}
	if age+time.Since(started) > p.opts.Grace/2 { // a collection may already take it for garbage
		return context.DeadlineExceeded
	}
	return nil
}
