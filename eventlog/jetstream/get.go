package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// errNoMessage: the stream has no such message.
var errNoMessage = errors.New("jetstream: no message")

// message is a stored message.
type message struct {
	subject  string
	sequence uint64
	at       time.Time // when it was stored
	header   nats.Header
	data     []byte
}

// lastMessage returns a subject's last message. It asks the stream's leader,
// since a direct get may be answered by a replica that lags.
func (l *Log) lastMessage(ctx context.Context, stream, subject string) (message, error) {
	return l.leaderGet(ctx, stream, map[string]any{"last_by_subj": subject})
}

// lastReadable is lastMessage for what must not be taken for absent: a last
// message that the server can't read, it answers as if there was none.
func (l *Log) lastReadable(ctx context.Context, stream, subject string) (m message, err error) {
	for range readableTries {
		m, err = l.lastMessage(ctx, stream, subject)
		if !errors.Is(err, errNoMessage) {
			return m, err
		}
		n, cerr := l.count(ctx, stream, subject)
		if cerr != nil {
			return m, cerr
		}
		if n == 0 {
			return m, err
		}
		// Or it has come, or is going, just now.
	}
	return m, fmt.Errorf("%w: the last message on %s can't be read", errDamaged, subject)
}

// readableTries is how often a message that is counted is asked for.
const readableTries = 5

// count returns how many messages a subject has.
func (l *Log) count(ctx context.Context, stream, subject string) (uint64, error) {
	var body struct {
		refusal
		State struct {
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	if err := l.askLeader(ctx, "$JS.API.STREAM.INFO."+stream, map[string]string{"subjects_filter": subject}, &body); err != nil {
		return 0, fmt.Errorf("jetstream: count: %w", err)
	}
	return body.State.Subjects[subject], nil
}

// bounds are a stream's first and last sequence.
type bounds struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
}

// stateOf returns a stream's bounds, as its leader knows them.
func (l *Log) stateOf(ctx context.Context, stream string) (bounds, error) {
	var body struct {
		refusal
		State bounds `json:"state"`
	}
	err := l.askLeader(ctx, "$JS.API.STREAM.INFO."+stream, struct{}{}, &body)
	return body.State, err
}

// messageAt returns the message with the given sequence.
func (l *Log) messageAt(ctx context.Context, stream string, seq uint64) (message, error) {
	return l.leaderGet(ctx, stream, map[string]any{"seq": seq})
}

func (l *Log) leaderGet(ctx context.Context, stream string, what map[string]any) (message, error) {
	var body struct {
		refusal
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
		} `json:"message"`
	}
	err := l.askLeader(ctx, "$JS.API.STREAM.MSG.GET."+stream, what, &body)
	if e, ok := errors.AsType[*apiError](err); ok && (e.ErrCode == codeNoMessageFound || e.ErrCode == codeStreamNotFound) {
		return message{}, errNoMessage
	}
	if err != nil {
		return message{}, fmt.Errorf("jetstream: get: %w", err)
	}
	if err := l.await(ctx, stream, body.Message.Sequence); err != nil {
		return message{}, fmt.Errorf("jetstream: get: %w", err)
	}
	m := message{subject: body.Message.Subject, sequence: body.Message.Sequence, at: body.Message.Time, data: body.Message.Data}
	if len(body.Message.Header) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(body.Message.Header); err != nil {
			return m, fmt.Errorf("jetstream: get: %w", err)
		}
	}
	return m, nil
}

const (
	// leaderTry is how long one request waits for a stream's leader.
	leaderTry = time.Second
	// leaderPatience is how long a request is repeated for a leader to be
	// elected: after the loss of one that takes 4 to 9 seconds, and a round.
	leaderPatience = 20 * time.Second
)

// askLeader asks JetStream what only a stream's leader answers, and waits for
// one while there is none. An answer that is an error is an *apiError; none is
// ErrUnavailable.
func (l *Log) askLeader(ctx context.Context, subject string, what any, answer refusable) error {
	req, err := json.Marshal(what)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := l.step(ctx, subject, func(ctx context.Context) error { return l.askOnce(ctx, subject, req, answer) })
		refused, answered := errors.AsType[*apiError](err)
		switch {
		case err == nil, answered && refused.Code != 503:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case l.isClosed():
			return eventlog.ErrClosed
		case !answered && !isUnsettled(err) && !errors.Is(err, nats.ErrNoResponders):
			return err
		case time.Since(began) > leaderPatience:
			return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		}
		if !l.pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

func (l *Log) askOnce(ctx context.Context, subject string, req []byte, answer refusable) error {
	try, cancel := context.WithTimeout(ctx, leaderTry)
	defer cancel()
	m, err := l.nc.RequestWithContext(try, subject, req)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return err
	}
	return answer.taken()
}

// refusable is an answer that may be an error.
type refusable interface{ taken() error }

// refusal is the part of an answer that is an error.
type refusal struct {
	Error *apiError `json:"error"`
}

// taken returns the error, once.
func (r *refusal) taken() error {
	if e := r.Error; e != nil {
		r.Error = nil
		return e
	}
	return nil
}

// getBatch returns a subject's messages from a sequence on, at most so many
// and so many bytes, in one request that any replica may answer. It is
// complete: each message names the one before, and the end mark the last.
// Errors: ErrIncomplete where something was lost.
func (l *Log) getBatch(ctx context.Context, stream, subject string, from uint64, count, size int) (messages []*nats.Msg, err error) {
	err = l.step(ctx, "batch", func(ctx context.Context) error {
		messages, _, err = l.getMany(ctx, stream, count, map[string]any{"seq": from, "next_by_subj": subject, "batch": count, "max_bytes": size})
		return err
	})
	return messages, err
}

// getMany is one request for at most count messages, and the header of the end mark.
func (l *Log) getMany(ctx context.Context, stream string, count int, what map[string]any) ([]*nats.Msg, nats.Header, error) {
	inbox := l.nc.NewInbox()
	// Room for the messages and the end mark: a synchronous subscription takes
	// half a MiB, whatever comes.
	answers := make(chan *nats.Msg, count+1)
	sub, err := l.nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, nil, fmt.Errorf("jetstream: read: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	req, _ := json.Marshal(what)
	if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, req); err != nil {
		return nil, nil, fmt.Errorf("jetstream: read: %w", err)
	}
	began, back := time.Now(), l.reconnected()
	tick := time.NewTicker(requestTick)
	defer tick.Stop()
	var messages []*nats.Msg
	var last uint64
	for {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-l.closed:
			return nil, nil, eventlog.ErrClosed
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-tick.C:
			if l.late(time.Since(began), answerTimeout, back) {
				return nil, nil, fmt.Errorf("%w: %w", eventlog.ErrIncomplete, nats.ErrTimeout)
			}
			continue
		}
		status := first(m.Header, headerStatus)
		if n := lastSequence(m.Header); n != last {
			return nil, nil, fmt.Errorf("%w: %d is followed by the successor of %d", eventlog.ErrIncomplete, last, n)
		}
		switch status {
		case "":
		case "204", "404":
			if err := l.await(ctx, stream, last); err != nil {
				return nil, nil, fmt.Errorf("jetstream: read: %w", err)
			}
			return messages, m.Header, nil
		case "503":
			return nil, nil, fmt.Errorf("%w: %w", eventlog.ErrIncomplete, nats.ErrNoResponders)
		default:
			return nil, nil, fmt.Errorf("jetstream: read: status %s", status)
		}
		if last, err = strconv.ParseUint(first(m.Header, headerSequence), 10, 64); err != nil {
			return nil, nil, fmt.Errorf("jetstream: message without a sequence: %w", err)
		}
		messages = append(messages, m)
	}
}

func lastSequence(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(first(h, headerLastSequence), 10, 64)
	return n
}
