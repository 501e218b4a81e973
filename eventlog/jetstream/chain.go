package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
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
func (l *Log) backwards(ctx context.Context, session string, from, to uint64) iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		stream, subject, err := l.place(session)
		for at := to; err == nil && at > from; {
			var m wire.Message
			if m, err = l.getAt(ctx, stream, at); err != nil || m.Subject != subject {
				break
			}
			r := wire.StoredAt(m.Subject, m.Sequence, m.At, m.Header, m.Data)
			if !yield(r, nil) || !r.Linked {
				return
			}
			at = r.Previous
		}
		if errors.Is(err, errNoMessage) {
			err = errGap
		}
		if err != nil {
			yield(wire.Stored{}, err)
		}
	}
}

// lastRecords returns the last records of the log behind from, up to the one at
// to, oldest first: a page of them at most. If they are not all, the first
// one's previous tells where the others end; so does errGap, which it returns
// with them.
func (l *Log) lastRecords(ctx context.Context, session string, from, to uint64) (records []wire.Stored, err error) {
	size := 0
	for r, rerr := range l.backwards(ctx, session, from, to) {
		if err = rerr; err != nil || !r.Linked {
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
func (l *Log) getAt(ctx context.Context, stream string, seq uint64) (wire.Message, error) {
	if seq == 0 {
		return wire.Message{}, errNoMessage
	}
	m, err := l.directGet(ctx, stream, map[string]any{"seq": seq})
	if err != nil {
		return l.messageAt(ctx, stream, seq)
	}
	return m, nil
}

// directGet returns a message as any replica has it, or errNoMessage.
func (l *Log) directGet(ctx context.Context, stream string, what map[string]any) (wire.Message, error) {
	req, _ := json.Marshal(what)
	var reply *nats.Msg
	err := l.step(ctx, "get", func(ctx context.Context) (err error) {
		try, cancel := context.WithTimeout(ctx, leaderTry)
		defer cancel()
		reply, err = l.nc.RequestWithContext(try, "$JS.API.DIRECT.GET."+stream, req)
		return err
	})
	if err != nil {
		return wire.Message{}, err
	}
	switch status := wire.First(reply.Header, wire.HeaderStatus); status {
	case "":
		m, err := wire.DirectMessage(reply)
		if err == nil {
			err = l.await(ctx, stream, m.Sequence)
		}
		return m, err
	case "404":
		return wire.Message{}, errNoMessage
	default:
		return wire.Message{}, fmt.Errorf("jetstream: get: status %s", status)
	}
}
