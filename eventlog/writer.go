package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Writer is the one writer of a session tree while its claim holds. Many
// goroutines may use it.
//
// This is where order, fencing and exactness come from:
//
//   - Calls wait in one queue, and their order there is their order in the
//     log. While an append is in flight, what arrives waits and goes together
//     in the next one: of each call all records or none, none if the stream
//     has ended at its place.
//   - Every append is a compare-and-swap on the session's last sequence, and
//     at most one is in flight. A publish that arrives late or twice fails
//     the comparison, so it can never be in the log a second time.
//   - A writer begins with a run_claimed record. The last claim holds the
//     tree; a writer that reads a claim which is not its own
//     is superseded and, since its next comparison had failed, has written
//     nothing after that claim.
//   - Every record carries the writer's id and an ordinal, which rises by one.
//     When a comparison fails or an answer is lost, the writer reads what it
//     has not seen. Its own ordinal there means that the answer was lost: the
//     append succeeded (see AppendOnce). Other records (a submitted result, a
//     request) are handed to Observe and the same bytes are sent again, after
//     them.
//   - Entries that were sent once don't change: if more were merged into them before they
//     are sent again, an append whose answer was lost would lose the rest. Before the
//     first try, adjacent deltas of Write become one record; no caller knows their
//     count. If another writer ends the stream between two tries and a call must
//     therefore be left out, the ordinals after it close up; the earlier try
//     can't arrive any more, since its comparison has failed for good.
//   - Once the writer is superseded, or gave up with an unknown outcome, all
//     waiting and all later calls fail, and nothing of them is written.
//
// An Append that finds no other call under way does its own work. A goroutine does the
// work of calls that come meanwhile, and of Writes; it ends when
// no call waits. Stop, or the end of WriterOptions.Context, ends both earlier.
type Writer struct {
	log     Log
	session string
	id      string
	merge   bool
	// gatherFrom is the number of records from which calls share an append.
	gatherFrom int
	limit      int // of a payload, in bytes
	observe    func(Record)
	buffer     sendBuffer

	// The flusher's alone.
	head    uint64
	ordinal uint64
	status  StreamStatus
	one     [1]*writeUnit // memory for a batch of one
}

// WriterOptions say where a writer starts.
type WriterOptions struct {
	// ID names the claim; it must be unique for all time.
	ID string
	// Head is the sequence of the last record that the caller knows, 0 if
	// there is none, and Status the stream's status there.
	Head   uint64
	Status StreamStatus
	// Observe is called with every record after Head, the writer's own and
	// others', once and in order, before the Append or Flush that waits for
	// it returns. It must neither call the writer nor panic, nor change what the
	// record's Chunk or Fact returns.
	Observe func(Record)
	// NoMerge leaves each record that comes by Write as it is.
	NoMerge bool
	// Context ends the writer, as Stop does; nil: only Stop does.
	Context context.Context
}

// NewWriter returns a writer that has not claimed yet.
func NewWriter(log Log, session string, o WriterOptions) *Writer {
	if o.ID == "" {
		panic("eventlog: NewWriter: no ID")
	}
	if o.Observe == nil {
		o.Observe = func(Record) {}
	}
	if o.Context == nil {
		o.Context = context.Background()
	}
	info := log.Info()
	w := &Writer{
		log: log, session: session, id: o.ID, merge: !o.NoMerge, gatherFrom: info.GatherFrom, limit: info.MaxRecordBytes,
		observe: o.Observe, head: o.Head, status: o.Status,
	}
	w.buffer.parent, w.buffer.work = o.Context, w.work
	return w
}

// Append writes entries, all or none, after all that was written before, and
// returns when they are durable and have been observed. It retries within
// ctx: if that ends while they wait for their turn, they are not written.
//
// Errors: ErrSuperseded; ErrSessionNotFound if the session was erased, even if
// its id is in use again; ErrErasing; ErrStreamEnded; ErrTooLarge;
// ErrWriterBroken; *CursorAheadError if the log has lost its end; ctx's error,
// alone if nothing was sent, else with ErrOutcomeUnknown: then every
// later call fails with ErrWriterBroken, and a new claim has to find out.
func (w *Writer) Append(ctx context.Context, entries ...Entry) error {
	return w.AppendIf(ctx, nil, entries...)
}

// wait queues c and waits until it is answered.
func (w *Writer) wait(ctx context.Context, c *pendingWrite) error {
	idle, _, err := w.buffer.enqueue(c)
	if err != nil {
		return err
	}
	if idle {
		w.workFor(ctx, c)
		return c.err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		w.buffer.leave(c, context.Cause(ctx))
		<-c.done
	}
	return c.err
}

// AppendIf is Append for entries that depend on the state that the caller knew: still, if
// not nil, is called before each try, when all earlier records have been observed. If it returns
// false, nothing is written, and the error is ErrStale. still must neither call
// the writer nor panic.
func (w *Writer) AppendIf(ctx context.Context, still func() bool, entries ...Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c, err := w.newCall(entries)
	if c == nil {
		return err
	}
	c.still = still
	return w.wait(ctx, c)
}

// Write queues entries, to be written all or none after all that was written
// before, and returns; while MaxQueuedRecords or MaxQueuedBytes are waiting,
// it waits for room within ctx. Adjacent deltas of NewChunk among what is written
// become one record. The entries must not be changed any more.
//
// Flush returns their outcome. After a Write has failed, and until that
// Flush, all Writes fail with its error, also those that are queued: a text
// never has a hole. Appends are not affected.
//
// Errors: of a Write before; ErrSuperseded; ErrTooLarge; ErrWriterBroken;
// ctx's error. In all these cases nothing is queued.
func (w *Writer) Write(ctx context.Context, entries ...Entry) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c, err := w.newCall(entries)
	if c == nil {
		return err
	}
	c.written = true
	for {
		_, room, err := w.buffer.enqueue(c)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-w.buffer.parent.Done(): // enqueue returns the error for that
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TryWrite is Write that does not wait: it reports false, and has queued nothing,
// while there is no room. Errors: as Write, but for ctx's.
func (w *Writer) TryWrite(entries ...Entry) (bool, error) {
	c, err := w.newCall(entries)
	if c == nil {
		return err == nil, err
	}
	c.written = true
	_, room, err := w.buffer.enqueue(c)
	return room == nil && err == nil, err
}

// Flush waits until all that was written so far is durable and has been
// observed, or has failed. It returns the first error of Writes that no Flush
// has returned yet, else the error that ended the writer, else nil. If ctx ends before,
// it returns ctx's error and leaves everything as it is.
func (w *Writer) Flush(ctx context.Context) error {
	if c := w.buffer.mark(); c != nil {
		select {
		case <-c.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return w.buffer.tell()
}

// Sync observes the records of other writers, after all earlier writes.
//
// Errors: as Append, but ErrOutcomeUnknown.
func (w *Writer) Sync(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return w.wait(ctx, &pendingWrite{sync: true})
}

// Stop ends the writer and waits for its goroutine. What waits is not
// written; what is in flight may or may not be. Later calls fail with
// ErrWriterBroken. It is idempotent.
func (w *Writer) Stop() {
	w.buffer.end(fmt.Errorf("%w: stopped", ErrWriterBroken))
	w.buffer.flusher.Wait()
}

// newCall returns entries as a call; nil if there is nothing to do.
func (w *Writer) newCall(entries []Entry) (*pendingWrite, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	if len(entries) > MaxAppendRecords {
		return nil, fmt.Errorf("%w: %d records, at most %d", ErrTooLarge, len(entries), MaxAppendRecords)
	}
	c := new(pendingWrite)
	c.entries = append(c.one[:0], entries...)
	for _, e := range entries {
		if len(e.Payload) > w.limit {
			return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(e.Payload), w.limit)
		}
		c.bytes += len(e.Payload)
	}
	return c, nil
}

// work is the flusher: it appends what waits, batch after batch, until
// nothing does.
func (w *Writer) work() {
	for w.buffer.next() {
		w.step()
	}
}

// workFor is the flusher until c, the first call that waits, is answered.
func (w *Writer) workFor(ctx context.Context, c *pendingWrite) {
	defer w.buffer.flusher.Done()
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { w.buffer.leave(c, context.Cause(ctx)) })
		defer stop()
	}
	if w.buffer.next() {
		defer w.buffer.handOver()
		w.step()
	}
}

// step appends what waits in one batch.
func (w *Writer) step() {
	b := &batch{merge: w.merge, units: w.one[:0]}
	defer func() { w.one[0] = nil }()
	ctx := w.buffer.launch(b)
	for c := w.buffer.dequeue(b); c != nil; c = w.buffer.dequeue(b) {
		b.add(c)
	}
	b.seal()
	if len(b.units) > 1 && b.records < w.gatherFrom {
		w.commitEach(b)
		return
	}
	w.commit(ctx, b)
}

// commitEach appends the units of b one by one.
func (w *Writer) commitEach(b *batch) {
	w.buffer.hold(b)
	for _, u := range b.units {
		one := &batch{units: append(w.one[:0], u)}
		w.commit(w.buffer.launch(one), one)
	}
}

// errObserver: Observe has panicked.
var errObserver = fmt.Errorf("%w: its observer panicked", ErrWriterBroken)

// commit appends b and answers its calls.
func (w *Writer) commit(ctx context.Context, b *batch) {
	err := errObserver
	defer func() {
		if err == errObserver {
			w.buffer.end(err)
		}
		w.buffer.finish(err, b.units...)
	}()
	err = w.tryAll(ctx, b)
}

// tryAll appends b, and again without those who make it fail.
func (w *Writer) tryAll(ctx context.Context, b *batch) error {
	err := w.buffer.ended()
	for err == nil {
		err = w.send(ctx, b)
		switch {
		case errors.Is(err, ErrOutcomeUnknown):
			w.buffer.end(ErrWriterBroken)
		case errors.Is(err, ErrSuperseded), errors.Is(err, ErrSessionNotFound):
			w.buffer.end(err)
		case err != nil && ctx.Err() != nil && w.buffer.ended() == nil:
			// A caller that gave up does not affect the others.
			ctx, err = w.buffer.launch(b), nil
			continue
		case errors.Is(err, ErrTooLarge) && len(b.units) > 1: // find out whose
			w.commitEach(b)
			b.units, err = nil, nil
		}
		break
	}
	return err
}

// send appends as much of b as the stream accepts, after the records of other writers.
func (w *Writer) send(ctx context.Context, b *batch) error {
	_, err := Update(ctx, w.log, w.session, UpdateOptions{
		Current: !b.syncs(), CatchUp: w.catchUp, Append: w.appendFrozen,
	}, func(uint64) ([]Entry, error) { return w.freeze(b), nil })
	return err
}

func (w *Writer) appendFrozen(ctx context.Context, frozen []Entry) (uint64, error) {
	last, _, err := appendOrFind(ctx, w.log, w.session, w.head, frozen)
	if err != nil {
		return 0, err
	}
	first := last + 1 - uint64(len(frozen))
	for i, e := range frozen {
		w.see(Record{Sequence: first + uint64(i), Time: time.Now(), Entry: e})
	}
	return last, nil
}

// freeze takes the calls out of b that must not be written, and numbers the
// records of the others. Payloads stay as they are.
func (w *Writer) freeze(b *batch) []Entry {
	status, n, kept := w.status, 0, b.units[:0]
	for _, u := range b.units {
		after, err := u.follow(w.session, status)
		if failed := w.buffer.failure(u); failed != nil {
			err = failed
		} else if still := u.writes[0].still; still != nil && !still() {
			err = ErrStale
		}
		if err != nil {
			w.buffer.finish(err, u)
			continue
		}
		status, kept = after, append(kept, u)
		for i := range u.entries {
			n++
			u.entries[i].Writer, u.entries[i].Ordinal = w.id, w.ordinal+uint64(n)
		}
	}
	b.units = kept
	if len(kept) == 1 {
		return kept[0].entries
	}
	frozen := make([]Entry, 0, n)
	for _, u := range kept {
		frozen = append(frozen, u.entries...)
	}
	return frozen
}

func (w *Writer) see(r Record) {
	w.head = r.Sequence
	if r.Agent == w.session {
		w.status = w.status.After(r.Envelope)
	}
	if r.Writer == w.id {
		w.ordinal = r.Ordinal
	}
	r.Entry = r.DecodeOnce() // observers may be several
	w.observe(r)
}
