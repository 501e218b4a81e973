package eventlog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
)

// UpdateOptions say what the caller of [Update] knows of the session.
type UpdateOptions struct {
	// Head is the sequence of the record that the first proposal follows. If it is 0,
	// CatchUp is called before the first proposal.
	Head uint64
	// Current: the caller has just read Head, or that the session does not exist (0).
	// Otherwise Head may be old: only an append proves that it is not, so a proposal that
	// appends nothing, or an append that does not find the session, is made again after
	// CatchUp.
	Current bool
	// CatchUp reads what is new, for the next proposal, and returns the head. It is called
	// after each conflict.
	CatchUp func(ctx context.Context) (head uint64, err error)
	// Writer returns the id of an append, as [AppendOnce] takes it, each time that there
	// is a proposal. nil: random ids. An append that met a conflict has left nothing, so
	// the next one may have the same id.
	Writer func() string
	// Append replaces [AppendOnce] where the caller folds what it appends. It appends after
	// the head that CatchUp has returned last, or Head.
	Append func(ctx context.Context, writer string, entries []Entry) (last uint64, err error)
}

// Update appends what propose returns for a session's head, exactly once. If another
// writer was first, it catches up and calls propose again, until ctx ends. No entries
// are no append. It returns the last record's sequence, or the head if propose had
// nothing to append.
//
// Errors: propose's, whatever they are; CatchUp's; as [AppendOnce], but for
// *ConflictError. After ErrOutcomeUnknown nothing is proposed again.
func Update(ctx context.Context, log Log, session string, o UpdateOptions, propose func(head uint64) ([]Entry, error)) (last uint64, err error) {
	var refused error // propose's, and no reason to try again even if it is a conflict
	head, known := o.Head, o.Current || o.Head > 0
	err = Contend(ctx, log, session, func(ctx context.Context) (err error) {
		for {
			if !known {
				if head, err = o.CatchUp(ctx); err != nil {
					return err
				}
				o.Current = true
			}
			known = false
			var entries []Entry
			entries, refused = propose(head)
			appends := refused == nil && len(entries) > 0
			if last = head; appends {
				last, err = o.append(ctx, log, session, head, entries)
			}
			if o.Current || appends && !errors.Is(err, ErrSessionNotFound) {
				return err
			}
		}
	})
	return last, cmp.Or(err, refused)
}

func (o *UpdateOptions) append(ctx context.Context, log Log, session string, head uint64, entries []Entry) (uint64, error) {
	writer := randomID("")
	if o.Writer != nil {
		writer = o.Writer
	}
	if o.Append != nil {
		return o.Append(ctx, writer(), entries)
	}
	return AppendOnce(ctx, log, session, writer(), head, entries)
}

func randomID(prefix string) func() string {
	return func() string { return prefix + rand.Text() }
}

// reading returns an [UpdateOptions].CatchUp that has see take what is new after from,
// which is a record's sequence if it is known. It reads no record twice, so that it
// keeps up with a run that writes all the time.
func reading(log Log, session string, from uint64, known bool, see func(Record) error) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		for r, err := range left(ctx, log, session, from, known) {
			if err == nil {
				err = see(r)
			}
			if err != nil {
				return from, err
			}
			from, known = r.Sequence, true
		}
		return from, nil
	}
}
