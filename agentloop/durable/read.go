package durable

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/durable"
)

// Piece is a part of a stream within one record.
type Piece struct {
	From, Next Offset
	Bytes      []byte            // of a stream of bytes
	Messages   []json.RawMessage // of a stream of JSON
	Closes     bool              // nothing follows
}

// Empty reports whether the piece has no data.
func (p Piece) Empty() bool { return len(p.Bytes) == 0 && len(p.Messages) == 0 }

// cut leaves out what is before and after two positions.
func (p Piece) cut(from, to int64) Piece {
	if n := from - p.From.Position; n > 0 {
		p.From.Position = from
		if p.Messages != nil {
			p.Messages = p.Messages[n:]
		} else {
			p.Bytes = p.Bytes[n:]
		}
	}
	if n := p.Next.Position - to; n > 0 {
		p.Next = Offset{Position: to, Sequence: p.From.Sequence}
		p.Closes = false
		if p.Messages != nil {
			p.Messages = p.Messages[:len(p.Messages)-int(n)]
		} else {
			p.Bytes = p.Bytes[:len(p.Bytes)-int(n)]
		}
	}
	return p
}

// appended is the type of the records that have data.
var appended = (*fact.DurableAppended)(nil).Type()

// pieceOf returns what a record appends, if it appends anything or closes the stream. last
// is the sequence of the record with data before it.
func pieceOf(r eventlog.Record, last uint64) (p Piece, ok bool, err error) {
	if r.Kind != eventlog.KindFact || r.Type != appended {
		return p, false, nil
	}
	decoded, err := r.Fact()
	if err != nil {
		return p, false, err
	}
	f := decoded.(*fact.DurableAppended)
	p.From = Offset{Position: f.Position, Sequence: last}
	p.Next, p.Closes = p.From, f.Closes
	if n := f.Size(); n > 0 {
		p.Next = Offset{Position: f.Position + n, Sequence: r.Sequence}
	}
	switch {
	case f.Messages != nil:
		p.Messages = f.Messages
	case f.Text != "":
		p.Bytes = []byte(f.Text)
	default:
		p.Bytes = f.Data
	}
	return p, !p.Empty() || p.Closes, nil
}

// pieces yields the data of a stream from an offset to its end. Errors: ErrOffset; ErrGone if
// retention has removed it; those of the log.
func (s *Streams) pieces(ctx context.Context, id string, d *durable.Stream, from Offset) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if from.Position > d.Position {
			yield(Piece{}, ErrOffset)
			return
		}
		if source := d.Source; source != nil {
			if from.Position < source.Position {
				for p, err := range s.inherited(ctx, source, from) {
					if !yield(p, err) || err != nil {
						return
					}
				}
				from = Offset{Position: source.Position, Sequence: source.Sequence}
			}
			if from.Position == source.Position {
				from.Sequence = 0 // the fork's own log begins there
			}
		}
		if from.Position == d.Position {
			return
		}
		next := from.Position
		for {
			misplaced := false // the sequence is not that of the position
			for p, err := range s.own(ctx, id, from, d.Sequence) {
				if misplaced = errors.Is(err, ErrOffset) || err == nil && !p.Empty() && p.From.Position > next; misplaced {
					break
				}
				if err != nil {
					yield(p, err)
					return
				}
				if p.Empty() || p.Next.Position <= next {
					continue
				}
				if source := d.Source; source != nil && p.From.Position == source.Position {
					p.From.Sequence = source.Sequence
				}
				p = p.cut(next, d.Position)
				next = p.Next.Position
				if !yield(p, nil) || next == d.Position {
					return
				}
			}
			if !misplaced {
				return
			}
			if from.Sequence == 0 {
				yield(Piece{}, ErrOffset)
				return
			}
			from.Sequence = 0 // the position alone counts
		}
	}
}

// inherited yields what a fork has of its source from an offset on.
func (s *Streams) inherited(ctx context.Context, source *fact.DurableSource, from Offset) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		t, err := s.states.Head(ctx, source.Stream)
		if err == nil && t.Durable == nil || errors.Is(err, eventlog.ErrSessionNotFound) {
			err = ErrGone
		}
		if err != nil {
			yield(Piece{}, err)
			return
		}
		for p, err := range s.pieces(ctx, source.Stream, t.Durable, from) {
			if err == nil {
				p = p.cut(p.From.Position, source.Position)
				p.Closes = false
			}
			if !yield(p, err) || err != nil || p.Next.Position >= source.Position {
				return
			}
		}
	}
}

// own yields what the log of a stream has after an offset, up to a record.
func (s *Streams) own(ctx context.Context, id string, from Offset, to uint64) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if from.Sequence >= to {
			yield(Piece{}, ErrOffset)
			return
		}
		last := from.Sequence
		for r, err := range s.log.Read(ctx, id, from.Sequence, to) {
			if err != nil {
				yield(Piece{}, readError(err))
				return
			}
			p, ok, err := pieceOf(r, last)
			if err != nil {
				yield(Piece{}, err)
				return
			}
			if !ok {
				continue
			}
			last = p.Next.Sequence
			if !yield(p, nil) {
				return
			}
		}
	}
}

// readError translates an error of a read.
func readError(err error) error {
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
		return errors.Join(ErrGone, err)
	}
	if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); ahead {
		return ErrOffset
	}
	return err
}
