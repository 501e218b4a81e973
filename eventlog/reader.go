package eventlog

import (
	"context"
	"iter"
)

// Reader is attached to a session's stream: it yields the facts and chunks that are
// not truncated, and follows the stream until it ends. One goroutine at a time may use it.
//
// What it promises (guarantees G2 to G6 of package logtest):
//
//   - It yields each effective record once and in order. It leaves out a record
//     that was truncated before the reader came to it.
//   - If a marker was written after the reader was attached, and the reader had
//     not yet passed the marker's AtSequence, then its next read returns a
//     [*StreamTruncatedError], once. Later reads yield the records that are left. A
//     reader that had passed AtSequence, or was attached later, gets no error.
//   - It ends when the stream has ended or failed, after all earlier records. The
//     last record is the stream_end or stream_failed record, or the marker of a
//     rollback to a point where the stream had ended. An end that a new
//     run has already undone does not count. A pause does not end the reader.
//   - A slow reader blocks no writer and no other reader.
//
// To report a marker at the next read, the reader asks the log for its head before each
// record that it yields: a round trip to the stream's leader, and one more if there are
// new records. Attaching reads the whole session once. For many readers of one session
// use [Log.Follow], which shares its work, and watch for markers.
type Reader struct {
	log     Log
	session string
	last    uint64 // everything up to here is passed
	known   uint64 // markers and the stream's life are known up to here
	dead    Truncations
	life    lifecycle
	news    *StreamTruncatedError // to be returned by the next read
}

// NewReader attaches a reader after the record with sequence from; 0 is before
// everything. Errors: as [Log.Follow].
func NewReader(ctx context.Context, log Log, session string, from uint64) (*Reader, error) {
	head, err := log.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	if from > head {
		return nil, CursorError(ctx, log, session, from)
	}
	r := &Reader{log: log, session: session, last: from, life: lifecycle{session: session}}
	for rec, err := range left(ctx, log, session, 0, false) {
		if err == nil {
			_, err = r.learn(rec)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Sequence returns how far the reader has come: another one can be attached
// after it.
func (r *Reader) Sequence() uint64 { return r.last }

// Status returns the stream's status as far as the reader knows it: ended,
// failed, or else active, also during a pause.
func (r *Reader) Status() StreamStatus {
	if s := r.life.now(); s.Terminal() {
		return s
	}
	return StreamActive
}

// Records yields the records after the reader's cursor until the stream ends
// or ctx does, whose cause is then the last error. A consumer may continue after
// a [*StreamTruncatedError]; any other error is the last. A consumer that stops
// and calls again continues where it stopped.
func (r *Reader) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if r.over() {
			return
		}
		for rec, err := range r.log.Follow(ctx, r.session, r.last) {
			if err != nil {
				yield(Record{}, err)
				return
			}
			more, err := r.catchUp(ctx, rec, yield)
			if err != nil {
				yield(Record{}, err)
			}
			if err != nil || !more {
				return
			}
			r.last = rec.Sequence
			if !r.dead.Covers(rec) && !yield(rec, nil) || r.over() {
				return
			}
		}
	}
}

// Chunks yields the chunks among Records. It ends with the first error, a
// [*StreamTruncatedError] too; another call yields the chunks that are left.
func (r *Reader) Chunks(ctx context.Context) Stream { return Chunks(r.Records(ctx)) }

// over reports whether everything up to the end of the stream is passed.
func (r *Reader) over() bool { return r.life.status.Terminal() && r.last >= r.life.since }

// catchUp reads the records that are in the log by now, before rec is yielded, and reports
// markers to the consumer. It reports false if the consumer wants no more.
func (r *Reader) catchUp(ctx context.Context, rec Record, yield func(Record, error) bool) (bool, error) {
	for {
		if err := r.look(ctx, rec); err != nil {
			return false, err
		}
		if r.news == nil {
			return true, nil
		}
		news := r.news
		r.news = nil
		if !yield(Record{}, news) {
			return false, nil
		}
	}
}

// look learns the records between what is known and the head.
func (r *Reader) look(ctx context.Context, rec Record) error {
	if rec.Sequence > r.known { // it is the next one
		if err := r.judge(rec); err != nil {
			return err
		}
	}
	head, err := r.log.Head(ctx, r.session)
	if err != nil || head <= r.known {
		return err
	}
	for rec, err := range r.log.Read(ctx, r.session, r.known, head) {
		if err == nil {
			err = r.judge(rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judge learns rec. If it is a marker that reaches beyond the cursor, the next read reports it.
func (r *Reader) judge(rec Record) error {
	m, err := r.learn(rec)
	if m != nil && m.AtSequence > r.last {
		r.news = &StreamTruncatedError{Reason: m.Reason, TruncatedAtStep: m.TruncatedAtStep, AtSequence: m.AtSequence}
	}
	return err
}

// learn takes the next record after what is known, and returns it if it is a
// marker.
func (r *Reader) learn(rec Record) (*Truncated, error) {
	m, err := markerOf(rec)
	if err == nil && m != nil {
		err = r.dead.Add(rec)
	}
	if err == nil {
		err = r.life.see(rec)
	}
	if err != nil {
		return nil, err
	}
	r.known = rec.Sequence
	return m, nil
}
