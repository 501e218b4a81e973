package durable

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/durable"
)

// View is something that clients read as a durable stream, as it is at a record of its log.
type View struct {
	ContentType string
	Name        string // of this stream, and of no later one with the same address
	Tail        Offset
	Closed      bool
	State       *durable.Stream // nil: it is a session

	log     string // its id
	head    uint64
	streams *Streams
}

// Open returns the view of a stream at the head of its log. Errors: ErrNotFound; ErrGone; those
// of the log.
func (s *Streams) Open(ctx context.Context, id string) (*View, error) {
	t, err := s.states.Head(ctx, id)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil, ErrNotFound
	}
	if err == nil {
		err = s.there(t)
	}
	if err != nil {
		return nil, err
	}
	d := t.Durable
	return &View{
		ContentType: d.ContentType, Name: strconv.FormatUint(d.Created, 10), Tail: Tail(d), Closed: d.Closed, State: d,
		log: id, head: t.Head, streams: s,
	}, nil
}

// OpenSession returns the view of a session: its chunks, as JSON messages, those that were
// truncated later among them. An offset is a record's sequence, twice. Errors: as
// eventlog.Log.Head.
func (s *Streams) OpenSession(ctx context.Context, session string) (*View, error) {
	head, err := s.log.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	return &View{ContentType: "application/json", Name: "session", Tail: sessionOffset(head), log: session, head: head, streams: s}, nil
}

func sessionOffset(sequence uint64) Offset {
	return Offset{Position: int64(sequence), Sequence: sequence}
}

// Pieces yields the data from an offset to the view's tail. Errors: ErrOffset; ErrGone; those
// of the log.
func (v *View) Pieces(ctx context.Context, from Offset) iter.Seq2[Piece, error] {
	if v.State != nil {
		return v.streams.pieces(ctx, v.log, v.State, from)
	}
	return func(yield func(Piece, error) bool) {
		switch {
		case from != sessionOffset(from.Sequence) || from.Position > v.Tail.Position:
			yield(Piece{}, ErrOffset)
			return
		case from == v.Tail:
			return
		}
		for r, err := range v.streams.log.Read(ctx, v.log, from.Sequence, v.Tail.Sequence) {
			if err != nil {
				yield(Piece{}, readError(err))
				return
			}
			if p, ok := chunkPiece(r); ok && !yield(p, nil) {
				return
			}
		}
	}
}

// chunkPiece returns a session's record as a piece, if clients see it.
func chunkPiece(r eventlog.Record) (Piece, bool) {
	if r.Kind != eventlog.KindChunk {
		return Piece{}, false
	}
	return Piece{
		From: sessionOffset(r.Sequence - 1), Next: sessionOffset(r.Sequence), Messages: []json.RawMessage{r.Payload},
	}, true
}

// Follow yields what is appended after the view's tail, until ctx ends, the stream is closed or
// it is deleted, which is the error ErrNotFound.
func (v *View) Follow(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		last := v.Tail.Sequence
		for r, err := range v.streams.log.Follow(ctx, v.log, v.head) {
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				err = ErrNotFound
			}
			if err != nil {
				yield(Piece{}, err)
				return
			}
			p, ok, err := v.live(r, last)
			if !ok && err == nil {
				continue
			}
			if !yield(p, err) || err != nil || p.Closes {
				return
			}
			last = p.Next.Sequence
		}
	}
}

// live returns what a record of the log appends.
func (v *View) live(r eventlog.Record, last uint64) (p Piece, ok bool, err error) {
	if v.State == nil {
		p, ok = chunkPiece(r)
		return p, ok, nil
	}
	if r.Kind == eventlog.KindFact && r.Type == changed {
		decoded, err := r.Fact()
		if err == nil && decoded.(*fact.DurableChanged).Deleted {
			err = ErrNotFound
		}
		return p, false, err
	}
	p, ok, err = pieceOf(r, last)
	if s := v.State.Source; ok && s != nil && p.From.Position == s.Position {
		p.From.Sequence = s.Sequence
	}
	return p, ok, err
}

// changed is the type of records beside the data.
var changed = (*fact.DurableChanged)(nil).Type()
