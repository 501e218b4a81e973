package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// LastMessage returns a subject's last message. It asks the stream's leader, since a
// replica that lags may answer a direct get. Errors: ErrNoMessage;
// eventlog.ErrUnavailable.
func (l *Link) LastMessage(ctx context.Context, stream, subject string) (wire.Message, error) {
	return l.LeaderGet(ctx, stream, map[string]any{"last_by_subj": subject})
}

// LastReadable is LastMessage for callers that must not take a damaged message for
// absent: if the server can't read a last message, it answers as if there were none.
// Further errors: wire.ErrDamaged.
func (l *Link) LastReadable(ctx context.Context, stream, subject string) (m wire.Message, err error) {
	for range ReadableTries {
		m, err = l.LastMessage(ctx, stream, subject)
		if !errors.Is(err, ErrNoMessage) {
			return m, err
		}
		n, cerr := l.Count(ctx, stream, subject)
		if cerr != nil {
			return m, cerr
		}
		if n == 0 {
			return m, err
		}
		// Or a message was stored or removed just now.
	}
	return m, fmt.Errorf("%w: the last message on %s can't be read", wire.ErrDamaged, subject)
}

// ReadableTries is how often a message is requested that the server counts but does not
// return.
const ReadableTries = 5

// Count returns how many messages a subject has.
func (l *Link) Count(ctx context.Context, stream, subject string) (uint64, error) {
	info, err := l.StreamInfo(ctx, stream, subject)
	if err != nil {
		return 0, fmt.Errorf("jetstream: count: %w", err)
	}
	return info.State.Subjects[subject], nil
}

// StreamInfo returns what a stream's leader reports, with the number of messages of each
// subject that filter matches; an empty filter matches none. Cluster is never nil: if the
// server is in no cluster, it is empty.
func (l *Link) StreamInfo(ctx context.Context, stream, filter string) (*natsjs.StreamInfo, error) {
	what := struct {
		Filter string `json:"subjects_filter,omitempty"`
	}{filter}
	body := struct {
		Refusal
		natsjs.StreamInfo
	}{StreamInfo: natsjs.StreamInfo{Cluster: &natsjs.ClusterInfo{}}}
	if err := l.AskLeader(ctx, "$JS.API.STREAM.INFO."+stream, what, &body); err != nil {
		return nil, err
	}
	return &body.StreamInfo, nil
}

// MessageAt returns the message with the given sequence.
func (l *Link) MessageAt(ctx context.Context, stream string, seq uint64) (wire.Message, error) {
	return l.LeaderGet(ctx, stream, map[string]any{"seq": seq})
}

func (l *Link) LeaderGet(ctx context.Context, stream string, what map[string]any) (wire.Message, error) {
	var body struct {
		Refusal
		Message struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
		} `json:"message"`
	}
	err := l.AskLeader(ctx, "$JS.API.STREAM.MSG.GET."+stream, what, &body)
	if e, ok := errors.AsType[*APIError](err); ok && (e.ErrCode == codeNoMessageFound || e.ErrCode == codeStreamNotFound) {
		return wire.Message{}, ErrNoMessage
	}
	if err != nil {
		return wire.Message{}, fmt.Errorf("jetstream: get: %w", err)
	}
	if err := l.Await(ctx, stream, body.Message.Sequence); err != nil {
		return wire.Message{}, fmt.Errorf("jetstream: get: %w", err)
	}
	m := wire.Message{Subject: body.Message.Subject, Sequence: body.Message.Sequence, At: body.Message.Time, Data: body.Message.Data}
	if len(body.Message.Header) > 0 {
		if m.Header, err = nats.DecodeHeadersMsg(body.Message.Header); err != nil {
			return m, fmt.Errorf("jetstream: get: %w", err)
		}
	}
	return m, nil
}

const (
	// leaderTry is how long one request waits for a stream's leader.
	leaderTry = time.Second
	// LeaderPatience is how long a request is repeated until a leader is elected: after
	// the loss of one that takes 4 to 9 seconds, and a round.
	LeaderPatience = 20 * time.Second
)

// AskLeader sends JetStream a request that only a stream's leader answers, and waits for
// one while there is none. Errors: an *APIError if the answer is one;
// eventlog.ErrUnavailable without an answer.
func (l *Link) AskLeader(ctx context.Context, subject string, what any, answer refusable) error {
	req, err := json.Marshal(what)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := l.Step(ctx, subject, func(ctx context.Context) error { return l.askOnce(ctx, subject, req, answer) })
		refused, answered := errors.AsType[*APIError](err)
		switch {
		case err == nil, answered && refused.Code != 503:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case l.IsClosed():
			return eventlog.ErrClosed
		case !answered && !IsUnsettled(err) && !errors.Is(err, nats.ErrNoResponders):
			return err
		case time.Since(began) > LeaderPatience:
			return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		}
		if !l.Pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

func (l *Link) askOnce(ctx context.Context, subject string, req []byte, answer refusable) error {
	try, cancel := context.WithTimeout(ctx, leaderTry)
	defer cancel()
	m, err := l.Conn.RequestWithContext(try, subject, req)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Data, answer); err != nil {
		return err
	}
	return answer.Taken()
}

// refusable is an answer that can be an error.
type refusable interface{ Taken() error }

// Refusal is the part of an answer that is an error.
type Refusal struct {
	Error *APIError `json:"error"`
}

// Taken returns the error and clears it.
func (r *Refusal) Taken() error {
	if e := r.Error; e != nil {
		r.Error = nil
		return e
	}
	return nil
}

// GetBatch returns a subject's messages from a sequence on, at most count and PageBytes in
// bytes, in one request that any replica may answer. The result has no gaps: each message
// names the one before, and the end mark the last one. Errors: ErrIncomplete if a message
// was lost.
func (l *Link) GetBatch(ctx context.Context, stream, subject string, from uint64, count int) (messages []*nats.Msg, err error) {
	err = l.Step(ctx, "batch", func(ctx context.Context) error {
		messages, _, err = l.GetMany(ctx, stream, count, map[string]any{"seq": from, "next_by_subj": subject, "batch": count, "max_bytes": PageBytes})
		return err
	})
	return messages, err
}

// GetMany sends one request for at most count messages, and also returns the header of
// the end mark.
func (l *Link) GetMany(ctx context.Context, stream string, count int, what map[string]any) ([]*nats.Msg, nats.Header, error) {
	inbox := l.Conn.NewInbox()
	// Room for the messages and the end mark: a synchronous subscription would allocate
	// half a MiB regardless.
	answers := make(chan *nats.Msg, count+1)
	sub, err := l.Conn.ChanSubscribe(inbox, answers)
	if err != nil {
		return nil, nil, fmt.Errorf("jetstream: read: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	req, _ := json.Marshal(what)
	if err := l.Conn.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, req); err != nil {
		return nil, nil, fmt.Errorf("jetstream: read: %w", err)
	}
	began, back := time.Now(), l.Reconnected()
	tick := time.NewTicker(requestTick)
	defer tick.Stop()
	var messages []*nats.Msg
	var last uint64
	for {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-l.Closed:
			return nil, nil, eventlog.ErrClosed
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-tick.C:
			if l.late(time.Since(began), AnswerTimeout, back) {
				return nil, nil, fmt.Errorf("%w: %w", eventlog.ErrIncomplete, nats.ErrTimeout)
			}
			continue
		}
		status := wire.First(m.Header, wire.HeaderStatus)
		if n := wire.LastSequence(m.Header); n != last {
			return nil, nil, fmt.Errorf("%w: %d is followed by the successor of %d", eventlog.ErrIncomplete, last, n)
		}
		switch status {
		case "":
		case "204", "404":
			if err := l.Await(ctx, stream, last); err != nil {
				return nil, nil, fmt.Errorf("jetstream: read: %w", err)
			}
			return messages, m.Header, nil
		case "503":
			return nil, nil, fmt.Errorf("%w: %w", eventlog.ErrIncomplete, nats.ErrNoResponders)
		default:
			return nil, nil, fmt.Errorf("jetstream: read: status %s", status)
		}
		if last, err = strconv.ParseUint(wire.First(m.Header, wire.HeaderSequence), 10, 64); err != nil {
			return nil, nil, fmt.Errorf("jetstream: message without a sequence: %w", err)
		}
		messages = append(messages, m)
	}
}

// GetAt returns the message with the given sequence. A message never changes, so any
// replica may answer. Sequence 0 has no message: a restored session names it for segments
// that were removed before.
func (l *Link) GetAt(ctx context.Context, stream string, seq uint64) (wire.Message, error) {
	if seq == 0 {
		return wire.Message{}, ErrNoMessage
	}
	return l.AnyGet(ctx, stream, map[string]any{"seq": seq})
}

// AnyGet returns a message from any replica, for callers that can tell that it is the right
// one. If a replica that lags does not have it, the leader is asked, whose answers cost
// more: they are in JSON.
func (l *Link) AnyGet(ctx context.Context, stream string, what map[string]any) (wire.Message, error) {
	m, err := l.DirectGet(ctx, stream, what)
	if err != nil {
		return l.LeaderGet(ctx, stream, what)
	}
	return m, nil
}

// DirectGet returns a message from any replica, or ErrNoMessage.
func (l *Link) DirectGet(ctx context.Context, stream string, what map[string]any) (wire.Message, error) {
	req, _ := json.Marshal(what)
	var reply *nats.Msg
	err := l.Step(ctx, "get", func(ctx context.Context) (err error) {
		try, cancel := context.WithTimeout(ctx, leaderTry)
		defer cancel()
		reply, err = l.Conn.RequestWithContext(try, "$JS.API.DIRECT.GET."+stream, req)
		return err
	})
	if err != nil {
		return wire.Message{}, err
	}
	switch status := wire.First(reply.Header, wire.HeaderStatus); status {
	case "":
		m, err := wire.DirectMessage(reply)
		if err == nil {
			err = l.Await(ctx, stream, m.Sequence)
		}
		return m, err
	case "404":
		return wire.Message{}, ErrNoMessage
	default:
		return wire.Message{}, fmt.Errorf("jetstream: get: status %s", status)
	}
}

const PageRecords = 512 // of one batched direct get

const PageBytes = 4 << 20 // of one batched direct get
