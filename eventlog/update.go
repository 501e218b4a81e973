package eventlog

import (
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
	// Writer returns the id of an append, as [AppendOnce] takes it; nil: random ids. It is
	// called for each proposal. An append that met a conflict has left nothing, so the next
	// one may have the same id.
	Writer func() string
	// Append replaces [AppendOnce] where the caller folds what it appends. The session's
	// head is what CatchUp has returned last, or Head.
	Append func(ctx context.Context, entries []Entry) (last uint64, err error)
}

// Update appends what propose returns for a session's head, exactly once. If another
// writer was first, it catches up and calls propose again, until ctx ends. No entries
// are no append. It returns the last record's sequence, or the head if propose had
// nothing to append.
//
// From the second append on, all others wait, on all nodes, except those that have met a
// conflict too (see [Log].Hold): a writer that always has an append in flight would win
// every time.
//
// Errors: propose's, whatever they are; CatchUp's; as [AppendOnce], but for
// *ConflictError. After ErrOutcomeUnknown nothing is proposed again.
func Update(ctx context.Context, log Log, session string, o UpdateOptions, propose func(head uint64) ([]Entry, error)) (uint64, error) {
	release := func() {}
	defer func() { release() }()
	held, head, known := ctx, o.Head, o.Current || o.Head > 0
	for {
		if !known {
			var err error
			if head, err = o.CatchUp(held); err != nil {
				return head, err
			}
			o.Current = true
		}
		known = false
		entries, err := propose(head)
		last := head
		if err == nil && len(entries) > 0 {
			last, err = o.append(held, log, session, head, entries)
			if _, conflict := errors.AsType[*ConflictError](err); conflict {
				next, done := log.Hold(ctx, session)
				release() // not before: nobody slips in between
				held, release = next, done
				continue
			}
			o.Current = o.Current || !errors.Is(err, ErrSessionNotFound)
		}
		if o.Current {
			return last, err
		}
	}
}

func (o *UpdateOptions) append(ctx context.Context, log Log, session string, head uint64, entries []Entry) (uint64, error) {
	if o.Append != nil {
		return o.Append(ctx, entries)
	}
	writer := randomID("")
	if o.Writer != nil {
		writer = o.Writer
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
