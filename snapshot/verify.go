package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
)

// Verify folds a session again and reports to found the saved folds that differ from the
// log's state at their sequence. If retention has removed the beginning, it starts from
// the first saved fold. If there are no saved folds, it reads nothing.
func (s *Store) Verify(ctx context.Context, session string, found func(integrity.Finding)) error {
	folds := s.opts.Folds
	if folds == nil {
		return nil
	}
	saved, err := folds.Sequences(ctx, session, JSON, packed)
	if err != nil || len(saved) == 0 {
		return err
	}
	v := &verification{ctx: ctx, folds: folds, session: session, saved: saved, found: found, tree: new(projector.Tree)}
	err = v.read(s.log, 0)
	if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
		v.tree, v.floor = nil, trimmed.Floor
		err = v.read(s.log, trimmed.Floor)
	}
	switch {
	case err == nil, errors.Is(err, eventlog.ErrSessionNotFound):
		return v.end(s.log)
	case errors.Is(err, eventlog.ErrIncomplete), errors.Is(err, eventlog.ErrDamaged):
		v.tell(integrity.FoundFoldUnverified, v.saved[0], "the log can't be read up to %d saved folds: %v", len(v.saved), err)
		return nil
	}
	return err
}

type verification struct {
	ctx     context.Context
	folds   Folds
	session string
	saved   []uint64 // not checked yet
	found   func(integrity.Finding)
	floor   uint64
	head    uint64
	tree    *projector.Tree // nil: unknown
}

func (v *verification) tell(code integrity.Code, seq uint64, format string, args ...any) {
	v.found(integrity.Finding{Code: code, Session: v.session, Sequence: seq, Detail: fmt.Sprintf(format, args...)})
}

// read folds the records after from.
func (v *verification) read(log eventlog.Log, from uint64) error {
	for r, err := range log.Read(v.ctx, v.session, from, 0) {
		if err != nil {
			return err
		}
		v.head = r.Sequence
		if v.tree != nil {
			projector.Apply(v.tree, r)
		}
		for len(v.saved) > 0 && v.saved[0] <= r.Sequence {
			n := v.saved[0]
			v.saved = v.saved[1:]
			switch {
			case n == r.Sequence:
				if err := v.check(n, r); err != nil {
					return err
				}
			case n <= v.floor:
				v.tell(integrity.FoundFoldUnverified, n, "retention has removed what the saved fold is of")
			default:
				v.tell(integrity.FoundFoldDiffers, n, "the session has no record with the saved fold's sequence")
			}
		}
	}
	return nil
}

// check compares the folds saved at r with the fold up to r.
func (v *verification) check(n uint64, r eventlog.Record) error {
	for _, form := range []Form{JSON, packed} {
		saved, err := v.folds.Nearest(v.ctx, v.session, n, form)
		if v.ctx.Err() != nil {
			return context.Cause(v.ctx)
		}
		if err != nil {
			v.tell(integrity.FoundFoldDamaged, n, "the saved fold can't be read: %v", err)
			continue
		}
		if saved == nil || saved.Sequence != n {
			continue // none in this form, or removed meanwhile
		}
		if err := v.compare(saved, r); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) compare(saved *Saved, r eventlog.Record) error {
	n := saved.Sequence
	if saved.Version != projector.Version && len(saved.State) > 0 {
		v.tell(integrity.FoundFoldUnverified, n, "the saved fold is of version %d, this is version %d", saved.Version, projector.Version)
		return nil
	}
	t, err := saved.tree()
	if err != nil {
		v.tell(integrity.FoundFoldDamaged, n, "the saved fold is no state at its sequence")
		return nil
	}
	if digest(r) != saved.Digest {
		v.tell(integrity.FoundFoldDiffers, n, "the saved fold ends with another record of that sequence: the record was changed, or the log had lost its end and gave its sequences again")
		return nil
	}
	if v.tree == nil {
		v.tree = t
		v.tell(integrity.FoundFoldUnverified, n, "retention has removed what the saved fold is of; the later ones are compared with what follows from it")
		return nil
	}
	same, err := sameState(v.tree, t, saved)
	if err != nil {
		return fmt.Errorf("snapshot: verify: %w", err)
	}
	if !same {
		v.tell(integrity.FoundFoldDiffers, n, "the saved fold is not the fold of the records up to there")
	}
	return nil
}

// sameState compares a state with a saved one, read. Equal states can be packed
// differently, since nil and empty differ there.
func sameState(fresh, read *projector.Tree, saved *Saved) (bool, error) {
	again, err := savedAs(saved.Form, fresh)
	if err != nil || bytes.Equal(again.State, saved.State) {
		return err == nil, err
	}
	if saved.Form == JSON {
		return jsondoc.Same(again.State, saved.State), nil
	}
	a, err := json.Marshal(fresh)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(read)
	return err == nil && jsondoc.Same(a, b), err
}

// end reports the folds that are ahead of the log.
func (v *verification) end(log eventlog.Log) error {
	if len(v.saved) == 0 {
		return nil
	}
	ahead := v.saved[len(v.saved)-1]
	switch head, err := log.Head(v.ctx, v.session); {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		v.tell(integrity.FoundEndLost, ahead, "a fold was saved up to %d of a session that has no records: it is lost, or was erased without its folds", ahead)
	case err != nil:
		return err
	case head < ahead: // else both are newer than the records that were read
		v.tell(integrity.FoundEndLost, v.head+1, "a fold was saved up to %d, the log ends at %d", ahead, head)
	}
	return nil
}
