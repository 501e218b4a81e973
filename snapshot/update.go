package snapshot

import (
	"context"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Update appends the entries that propose returns for the session's state, which is nil
// if there is no session; see [eventlog.Update]. It returns the state after the append,
// which belongs to the caller as that of [Store.Head] does. writer is as in
// [eventlog.UpdateOptions]. Errors: as [Store.Head] and eventlog.Update; the state is nil
// then.
func (s *Store) Update(
	ctx context.Context, session string, writer func() string, propose func(*projector.Tree) ([]eventlog.Entry, error),
) (*projector.Tree, error) {
	t, err := s.Head(ctx, session)
	o := eventlog.UpdateOptions{Current: true, Writer: writer}
	switch {
	case err == nil:
		o.Head = t.Head
	case !errors.Is(err, eventlog.ErrSessionNotFound):
		return nil, err
	}
	o.CatchUp = func(ctx context.Context) (uint64, error) {
		if t == nil {
			t = new(projector.Tree)
		}
		for r, err := range eventlog.After(ctx, s.log, session, t.Head) {
			if err != nil {
				return 0, err
			}
			projector.Apply(t, r)
		}
		return t.Head, nil
	}
	var entries []eventlog.Entry
	last, err := eventlog.Update(ctx, s.log, session, o, func(uint64) (_ []eventlog.Entry, err error) {
		entries, err = propose(t)
		return entries, err
	})
	if err != nil {
		return nil, err
	}
	if t == nil && len(entries) > 0 {
		t = new(projector.Tree)
	}
	for i, e := range entries {
		projector.Apply(t, eventlog.Record{Sequence: last + 1 - uint64(len(entries)-i), Entry: e})
	}
	return t, nil
}
