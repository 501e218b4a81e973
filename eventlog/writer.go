package eventlog

import (
	"context"
	"errors"
	"time"
)

// Writer is the one writer of a session tree while its claim holds.
//
// This is where order, fencing and exactness come from:
//
//   - Every append is a compare-and-swap on the session's last sequence, and
//     at most one is in flight. A publish that arrives late or twice fails
//     the comparison, so it can never be in the log a second time.
//   - A writer begins with a run_claimed record. Whoever holds the tree is
//     whoever claimed last; a writer that meets a claim that is not its own
//     is superseded and, since its next comparison had failed, has written
//     nothing after that claim.
//   - Every record carries the writer's id and an ordinal. When a comparison
//     fails or an answer is lost, the writer reads what it has not seen. Its
//     own ordinal there means that the answer was lost: the append succeeded
//     (see AppendOnce). Other records (a submitted result, a request) are
//     handed to Observe and the same bytes are sent again, behind them.
//
// Several goroutines may append; their batches go one after the other.
type Writer struct {
	log     Log
	session string
	id      string
	observe func(Record)

	turn    chan struct{} // held while appending
	head    uint64
	ordinal uint64
	status  StreamStatus
	fatal   error
}

// WriterOptions say where a writer starts.
type WriterOptions struct {
	// ID names the claim; it must be unique for all time.
	ID string
	// Head is the sequence up to which the caller knows the log, and Status
	// the stream's status there.
	Head   uint64
	Status StreamStatus
	// Observe is called with every record after Head, the writer's own and
	// others', once and in order, before Append returns. It must not append.
	Observe func(Record)
}

// NewWriter returns a writer that has not claimed yet.
func NewWriter(log Log, session string, o WriterOptions) *Writer {
	if o.ID == "" {
		panic("eventlog: NewWriter: no ID")
	}
	if o.Observe == nil {
		o.Observe = func(Record) {}
	}
	return &Writer{
		log: log, session: session, id: o.ID, observe: o.Observe,
		turn: make(chan struct{}, 1), head: o.Head, status: o.Status,
	}
}

// Claim makes w the tree's only writer. It fails with ErrSuperseded if
// another writer has claimed since Head.
func (w *Writer) Claim(ctx context.Context, claim *RunClaimed) error {
	e, err := NewFact(claim.SessionID, claim, Labels{Run: claim.RunID})
	if err != nil {
		return err
	}
	return w.Append(ctx, e)
}

// Append writes entries, all or none, and returns when they are durable and
// have been observed. It retries within ctx.
//
// Errors: ErrSuperseded; ErrStreamEnded; ErrTooLarge; ErrWriterBroken, and
// ctx's error with ErrOutcomeUnknown if it ended too early: then every later
// append fails with ErrWriterBroken, and a new claim has to find out.
func (w *Writer) Append(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if w.fatal != nil {
		return w.fatal
	}
	frozen := make([]Entry, len(entries))
	for i, e := range entries {
		e.Writer, e.Ordinal = w.id, w.ordinal+1+uint64(i)
		frozen[i] = e
	}
	err := w.send(ctx, frozen)
	switch {
	case err == nil:
	case errors.Is(err, ErrSuperseded):
		w.fatal = ErrSuperseded
	case errors.Is(err, ErrOutcomeUnknown):
		w.fatal = ErrWriterBroken
	}
	return err
}

// send appends the frozen batch behind whatever others have written, unless
// that is the stream's end.
func (w *Writer) send(ctx context.Context, frozen []Entry) error {
	for {
		status := w.status
		for _, e := range frozen {
			if status.Refuses(e.Envelope) {
				return ErrStreamEnded
			}
			status = status.After(e.Envelope)
		}
		last, err := appendOnce(ctx, w.log, w.session, w.head, frozen)
		if err == nil {
			first := last + 1 - uint64(len(frozen))
			for i, e := range frozen {
				w.see(Record{Sequence: first + uint64(i), Time: time.Now(), Entry: e})
			}
			return nil
		}
		if _, conflict := errors.AsType[*ConflictError](err); !conflict {
			return err
		}
		if err := w.catchUp(ctx); err != nil {
			return err
		}
	}
}

// catchUp observes what others wrote behind head.
func (w *Writer) catchUp(ctx context.Context) error {
	for r, err := range w.log.Read(ctx, w.session, w.head, 0) {
		if err != nil {
			return err
		}
		w.see(r)
		if r.Kind == KindFact && r.Type == (*RunClaimed)(nil).Type() {
			return ErrSuperseded
		}
	}
	return nil
}

func (w *Writer) see(r Record) {
	w.head = r.Sequence
	w.status = w.status.After(r.Envelope)
	if r.Writer == w.id {
		w.ordinal = r.Ordinal
	}
	w.observe(r)
}
