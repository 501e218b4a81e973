package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/nats-io/nats.go"
)

// farSequences is over how many sequences, some block of small records, a read
// takes what the log has record by record from behind, see the package's
// "Far apart".
const farSequences = 10_000

// backwards yields what the log has of a session behind from, newest first,
// beginning with the record at to. It ends where a record does not follow one
// behind from, with errGap if that one is not in the log, and without an error
// where to is not the session's or a record names none.
func (l *Log) backwards(ctx context.Context, session string, from, to uint64) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		stream, subject, err := l.place(session)
		for at := to; err == nil && at > from; {
			var m message
			if m, err = l.getAt(ctx, stream, at); err != nil || m.subject != subject {
				break
			}
			r := storedAt(m.subject, m.sequence, m.at, m.header, m.data)
			if !yield(r, nil) || !r.linked {
				return
			}
			at = r.previous
		}
		if errors.Is(err, errNoMessage) {
			err = errGap
		}
		if err != nil {
			yield(stored{}, err)
		}
	}
}

// lastRecords returns the last records of the log behind from, up to the one at
// to, oldest first: a page of them at most. If they are not all, the first
// one's previous tells where the others end; so does errGap, which it returns
// with them.
func (l *Log) lastRecords(ctx context.Context, session string, from, to uint64) (records []stored, err error) {
	size := 0
	for r, rerr := range l.backwards(ctx, session, from, to) {
		if err = rerr; err != nil || !r.linked {
			break
		}
		records, size = append(records, r), size+len(r.Payload)
		if len(records) == pageRecords || size >= pageBytes {
			break
		}
	}
	slices.Reverse(records)
	return records, err
}

// getAt returns the message with the given sequence. What a stream has there
// never changes, so any replica may answer; one that lags has it not, and then
// the leader decides. There is nothing at 0, where a restored session has the
// segments that were gone before.
func (l *Log) getAt(ctx context.Context, stream string, seq uint64) (message, error) {
	if seq == 0 {
		return message{}, errNoMessage
	}
	m, err := l.directGet(ctx, stream, map[string]any{"seq": seq})
	if err != nil {
		return l.messageAt(ctx, stream, seq)
	}
	return m, nil
}

// directGet returns a message as any replica has it, or errNoMessage.
func (l *Log) directGet(ctx context.Context, stream string, what map[string]any) (message, error) {
	req, _ := json.Marshal(what)
	var reply *nats.Msg
	err := l.step(ctx, "get", func(ctx context.Context) (err error) {
		try, cancel := context.WithTimeout(ctx, leaderTry)
		defer cancel()
		reply, err = l.nc.RequestWithContext(try, "$JS.API.DIRECT.GET."+stream, req)
		return err
	})
	if err != nil {
		return message{}, err
	}
	switch status := first(reply.Header, headerStatus); status {
	case "":
		m, err := directMessage(reply)
		if err == nil {
			err = l.await(ctx, stream, m.sequence)
		}
		return m, err
	case "404":
		return message{}, errNoMessage
	default:
		return message{}, fmt.Errorf("jetstream: get: status %s", status)
	}
}

// directMessage is the message of an answer to a direct get.
func directMessage(reply *nats.Msg) (message, error) {
	r, err := recordOf(reply.Header, reply.Data)
	return message{
		subject: first(reply.Header, headerSubject), sequence: r.Sequence, at: r.Time, header: reply.Header, data: reply.Data,
	}, err
}
