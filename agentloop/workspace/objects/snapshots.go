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
// if it was not.
func (p *Provider) keep(ctx context.Context, s snapshot) (fresh uint64, err error) {
	if err := p.kept(ctx, s); !errors.Is(err, workspace.ErrGone) {
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
	w.tidy(ctx)
	ctx, cancel := limited(ctx)
	defer cancel()
	for {
		h, err := w.head(ctx)
		if err != nil {
			return nil, fmt.Errorf("objects: snapshot: %w", err)
		}
		s := snapshot{Root: w.session.Root, Manifest: h.manifest}
		fresh, err := w.p.keep(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("objects: snapshot: %w", err)
		}
		// A collection looks at heads before it looks at snapshots. If the head
		// is the same still, it has seen one of the two.
		now, err := w.head(ctx)
		if err == nil && now.sequence == h.sequence {
			return json.Marshal(s)
		}
		if fresh > 0 {
			err = errors.Join(err, w.p.overwrite(ctx, fresh))
		}
		if err != nil {
			return nil, fmt.Errorf("objects: snapshot: %w", err)
		}
	}
}

// Restore implements workspace.Snapshots.
func (w *space) Restore(ctx context.Context, text json.RawMessage) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	for {
		h, err := w.head(ctx)
		if err != nil {
			return fmt.Errorf("objects: restore: %w", err)
		}
		var manifest content
		if text == nil {
			if manifest, err = w.p.putTree(ctx, w.session.Root, filetree.Tree{}); err != nil {
				return fmt.Errorf("objects: restore: %w", err)
			}
		} else {
			s, err := parseSnapshot(text)
			if err == nil && s.Root != w.session.Root {
				err = fmt.Errorf("objects: the snapshot is of another session tree")
			}
			if err == nil {
				err = w.p.kept(ctx, s)
			}
			if err != nil {
				return fmt.Errorf("objects: restore: %w", err)
			}
			manifest = s.Manifest
		}
		if h.manifest == manifest {
			return nil
		}
		if err = w.p.putHead(ctx, w.session, h.sequence, manifest); !errors.Is(err, errChanged) {
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
	contents := map[content]bool{from.Manifest: true}
	for _, node := range t {
		contents[content{Hash: node.Hash, Size: node.Size}] = true
	}
	began := time.Now()
	for c := range contents {
		data, err := p.get(ctx, from.Root, c)
		if err == nil {
			_, err = p.put(ctx, to.Root, data)
		}
		if err != nil {
			return nil, fmt.Errorf("objects: adopt: %w", err)
		}
	}
	if time.Since(began) > p.opts.Grace/2 { // a collection may have begun to take it for garbage
		return nil, fmt.Errorf("objects: adopt: %w", context.DeadlineExceeded)
	}
	if _, err := p.keep(ctx, own); err != nil {
		return nil, fmt.Errorf("objects: adopt: %w", err)
	}
	return json.Marshal(own)
}
