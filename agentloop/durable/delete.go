package durable

import (
	"context"
	"errors"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Delete erases a stream. If it has forks, it remains for them, and is erased with the last
// one. Errors: ErrNotFound; ErrGone if it was deleted before; those of the log.
func (s *Streams) Delete(ctx context.Context, id string, by Owner) error {
	t, err := s.states.Head(ctx, id)
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return ErrNotFound
	case err != nil:
		return err
	case !by.may(t):
		return ErrNotFound
	}
	if err := s.there(t); err != nil {
		return err
	}
	return s.remove(ctx, id, by.may) // again: another caller may have created it again
}

// Expire is Delete for a stream that has expired; others are left alone. It also erases one
// that was deleted and has no forks left. Errors: those of the log.
func (s *Streams) Expire(ctx context.Context, id string) error {
	err := s.remove(ctx, id, func(t *projector.Tree) bool { return t.Durable.Deleted || s.expired(t.Durable) })
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// remove erases a stream for which may returns true; others are ErrNotFound. It marks it as deleted first: from then
// on no fork of it begins, so that what it has is known.
func (s *Streams) remove(ctx context.Context, id string, may func(*projector.Tree) bool) error {
	var head uint64
	d, err := s.update(ctx, id, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
		head = t.Head
		switch d := t.Durable; {
		case t.Head == 0:
			return nil, nil, ErrNotFound
		case d == nil: // its creation was cut off by an older version, or is no stream's
			return nil, nil, nil
		case !may(t):
			return nil, nil, ErrNotFound
		case d.Deleted:
			return nil, nil, nil
		}
		entries, err := s.facts(id, &fact.DurableChanged{Deleted: true, Base: s.base(ctx, id)})
		return entries, nil, err
	})
	if err != nil {
		return err
	}
	if forked, err := s.forked(ctx, id, &d); forked || err != nil {
		return err
	}
	// Another node may erase the stream first, and a client may then create one with its name.
	if _, err := s.states.Erase(eventlog.WithHead(ctx, id, head), id); err != nil {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return ErrNotFound
		}
		return err
	}
	if d.Source == nil {
		return nil
	}
	s.unannounce(ctx, d.Source)
	// The source may have remained for this fork alone. If this fails, a sweep finds it.
	_ = s.remove(ctx, d.Source.Stream, func(t *projector.Tree) bool { return t.Durable.Deleted })
	return nil
}
