package durable

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/durable"
)

// announce tells the source of a fork of the fork, and completes what the fork inherits. If a
// stream is there already it announces nothing.
func (s *Streams) announce(ctx context.Context, id string, by Owner, c *Create) (*fact.DurableSource, error) {
	exists, err := s.states.Head(ctx, id)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil, err
	}
	if err == nil {
		if existing := exists.Durable; existing != nil && existing.Source != nil && existing.Source.Stream == c.Fork.Source {
			c.inherit(existing) // what it has inherited it may be asked for again
		}
		if err := s.matches(exists, by, *c); !errors.Is(err, errExpired) {
			return nil, err
		}
		return nil, errExpired
	}
	view, err := s.Open(ctx, c.Fork.Source)
	switch {
	case errors.Is(err, ErrGone):
		return nil, ErrSourceGone
	case err != nil:
		return nil, err
	}
	source := view.State
	at, err := s.forkPoint(ctx, source, *c.Fork)
	if err != nil {
		return nil, err
	}
	from := &fact.DurableSource{Stream: c.Fork.Source, Ref: rand.Text(), Position: at.Position, Sequence: at.Sequence, Depth: 1}
	if source.Source != nil {
		from.Depth = source.Source.Depth + 1
	}
	if from.Depth > MaxDepth {
		return nil, ErrTooManyForks
	}
	_, err = s.update(ctx, c.Fork.Source, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
		err := s.there(t)
		if errors.Is(err, ErrGone) {
			err = ErrSourceGone
		}
		switch {
		case err != nil:
			return nil, nil, err
		case !by.may(t):
			return nil, nil, ErrNotFound
		case c.ContentType != "" && mediaType(c.ContentType) != mediaType(t.Durable.ContentType):
			return nil, nil, ErrContentType
		case len(t.Durable.Forks) >= durable.MaxForks:
			return nil, nil, ErrTooManyForks
		}
		c.inherit(t.Durable)
		entries, err := s.facts(c.Fork.Source, &fact.DurableChanged{
			Fork: &fact.DurableFork{Stream: id, Ref: from.Ref}, Base: s.base(ctx, c.Fork.Source),
		})
		return entries, &quota.Want{}, err
	})
	return from, err
}

// inherit takes over what a fork does not say.
func (c *Create) inherit(source *durable.Stream) {
	if c.ContentType == "" {
		c.ContentType = source.ContentType
	}
	if c.TTL == nil && c.ExpiresAt == "" {
		c.TTL, c.ExpiresAt = source.TTL, source.ExpiresAt
	}
}

// forkPoint returns where a fork leaves its source.
func (s *Streams) forkPoint(ctx context.Context, source *durable.Stream, f Fork) (Offset, error) {
	at := Tail(source)
	if f.At != nil {
		at = *f.At
	}
	if at.Position > source.Position || at.Position+f.Past > source.Position {
		return at, ErrForkPoint
	}
	if at.Position == source.Position && f.Past == 0 {
		return Tail(source), nil
	}
	// The place must be one that the stream has: after a record, or that far into the next.
	for p, err := range s.pieces(ctx, f.Source, source, at) {
		if errors.Is(err, ErrOffset) {
			return at, ErrForkPoint
		}
		if err != nil {
			return at, err
		}
		switch size := p.Next.Position - p.From.Position; {
		case f.Past > size:
			return at, ErrForkPoint
		case f.Past == size:
			return p.Next, nil
		}
		return Offset{Position: at.Position + f.Past, Sequence: p.From.Sequence}, nil
	}
	return at, ErrForkPoint
}

// unannounce tells the source of a fork that the fork is gone. A failure is made up for
// later: see forked.
func (s *Streams) unannounce(ctx context.Context, from *fact.DurableSource) {
	_, _ = s.update(ctx, from.Stream, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
		if t.Durable == nil {
			return nil, nil, nil
		}
		if _, known := t.Durable.Forks[from.Ref]; !known {
			return nil, nil, nil
		}
		entries, err := s.facts(from.Stream, &fact.DurableChanged{
			Fork: &fact.DurableFork{Stream: t.Durable.Forks[from.Ref].Stream, Ref: from.Ref, Gone: true}, Base: s.base(ctx, from.Stream),
		})
		return entries, nil, err
	})
}

// forked reports whether a stream has a fork: one that exists, expired or not, or one that was
// announced a short time ago.
func (s *Streams) forked(ctx context.Context, id string, d *durable.Stream) (bool, error) {
	for ref, f := range d.Forks {
		if s.now().UnixMilli()-f.Since < pending.Milliseconds() {
			return true, nil
		}
		t, err := s.states.Head(ctx, f.Stream)
		switch {
		case errors.Is(err, eventlog.ErrSessionNotFound):
		case err != nil:
			return true, err
		case t.Durable != nil && t.Durable.Source != nil && t.Durable.Source.Stream == id && t.Durable.Source.Ref == ref:
			return true, nil
		}
	}
	return false, nil
}
