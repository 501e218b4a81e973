package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// allMessages yields all messages that a stream has of a subject, oldest first. It
// continues after unreadable ones: a message that can't be parsed is yielded with its
// sequence and ErrDamaged; one that the server itself can't read is left out, as the
// server does. Any other error is the last item.
func (l *Verifier) allMessages(ctx context.Context, stream, subject string) iter.Seq2[wire.Message, error] {
	return func(yield func(wire.Message, error) bool) {
		from, count := uint64(1), link.PageRecords
		for {
			messages, err := l.GetBatch(ctx, stream, subject, from, count)
			if ctx.Err() != nil {
				yield(wire.Message{}, context.Cause(ctx))
				return
			}
			if err != nil && count > 1 && !errors.Is(err, context.DeadlineExceeded) {
				count /= 2 // until the message that can't be parsed is alone
				continue
			}
			if err == nil && len(messages) > 0 {
				for _, m := range messages {
					seq, err := wire.SequenceOf(m)
					if err == nil && wire.First(m.Header, wire.HeaderStream) == "" {
						// The server's first header follows the rest of a truncated one;
						// the server does not check their length.
						err = fmt.Errorf("%w: its headers are cut", wire.ErrDamaged)
					}
					if !yield(wire.Message{Sequence: seq, Header: m.Header, Data: m.Data}, err) {
						return
					}
					from = seq + 1
				}
				count = min(2*count, link.PageRecords)
				continue
			}
			m, err := l.nextMessage(ctx, stream, subject, from)
			switch {
			case errors.Is(err, link.ErrNoMessage):
				if from, err = l.behindUnreadable(ctx, stream, subject, from); err != nil {
					yield(wire.Message{}, err)
				}
				if err != nil || from == 0 {
					return
				}
				continue
			case err != nil && m.Sequence == 0:
				yield(wire.Message{}, err)
				return
			case err != nil:
				err = fmt.Errorf("%w: %w", wire.ErrDamaged, err)
			}
			if !yield(m, err) {
				return
			}
			from = m.Sequence + 1
		}
	}
}

// nextMessage returns a subject's first message from a sequence on. Its sequence is set
// even if its headers can't be parsed.
func (l *Verifier) nextMessage(ctx context.Context, stream, subject string, from uint64) (wire.Message, error) {
	m, err := l.LeaderGet(ctx, stream, map[string]any{"seq": from, "next_by_subj": subject})
	if m.Sequence > 0 {
		if m.Header == nil {
			m.Header = nats.Header{}
		}
		m.Header[wire.HeaderSequence] = []string{strconv.FormatUint(m.Sequence, 10)}
		m.Header[wire.HeaderSubject] = []string{m.Subject}
	}
	return m, err
}

// behindUnreadable returns where a subject continues if the server yields nothing from a
// sequence on although it has more, 0 if it has not: it stops at a compressed block that
// it can't decompress.
func (l *Verifier) behindUnreadable(ctx context.Context, stream, subject string, from uint64) (uint64, error) {
	last, err := l.LastMessage(ctx, stream, subject)
	if last.Sequence < from {
		if last.Sequence > 0 || errors.Is(err, link.ErrNoMessage) {
			err = nil
		}
		return 0, err
	}
	nothing, next := from, last.Sequence
	for next-nothing > 1 {
		middle := nothing + (next-nothing)/2
		m, err := l.nextMessage(ctx, stream, subject, middle)
		switch {
		case m.Sequence > 0:
			next = middle
		case errors.Is(err, link.ErrNoMessage):
			nothing = middle
		default:
			return 0, err
		}
	}
	return next, nil
}

// subjectAt returns the subject of the message with a sequence, empty if there
// is none.
func (l *Verifier) subjectAt(ctx context.Context, stream string, seq uint64) (string, error) {
	m, err := l.MessageAt(ctx, stream, seq)
	if errors.Is(err, link.ErrNoMessage) {
		return "", nil
	}
	if m.Sequence > 0 { // even if its headers can't be parsed
		err = nil
	}
	return m.Subject, err
}

// streamState is a stream's state as the server reports it.
type streamState struct {
	First    uint64            `json:"first_seq"`
	Last     uint64            `json:"last_seq"`
	Missing  []uint64          `json:"deleted"`
	Subjects map[string]uint64 `json:"subjects"` // messages of each
	// Lost is what the server itself has found missing since it started. It may not know
	// which messages those are.
	Lost *struct {
		Messages []uint64 `json:"msgs"`
		Bytes    uint64   `json:"bytes"`
	} `json:"lost"`
}

// streamState requests a stream's state. With a subject, the state counts its messages;
// without, it has the sequences without a message, all of them in one answer, and the
// lost messages.
func (l *Verifier) streamState(ctx context.Context, stream, subject string) (streamState, error) {
	req, _ := json.Marshal(map[string]any{"subjects_filter": subject, "deleted_details": subject == ""})
	answer, err := l.Request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.INFO." + stream, Data: req}, link.AnswerTimeout)
	if err != nil {
		return streamState{}, fmt.Errorf("jetstream: stream %s: %w", stream, err)
	}
	var body struct {
		State streamState    `json:"state"`
		Error *link.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return streamState{}, fmt.Errorf("jetstream: stream %s: %w", stream, err)
	}
	if body.Error != nil {
		return streamState{}, fmt.Errorf("jetstream: stream %s: %w", stream, body.Error)
	}
	return body.State, nil
}

// count returns how many messages the requested subject has.
func (s streamState) count() (n uint64) {
	for _, c := range s.Subjects {
		n += c
	}
	return n
}
