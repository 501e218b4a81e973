package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

const (
	// maxOpenBatches is how many atomic batches a node may have open on a stream. The
	// server accepts 50 from all nodes together; it refuses a further one, which is sent
	// again.
	maxOpenBatches = 8
	// Pauses before a temporarily refused request is sent again.
	MinRefusedPause = time.Millisecond
	MaxRefusedPause = 20 * time.Millisecond
	// AnswerTimeout is how long one try waits for an answer that may be lost; then the
	// outcome is looked up.
	AnswerTimeout = 5 * time.Second
	// replicatedTimeout is AnswerTimeout of an append on several servers, which drop
	// requests between two leaders.
	replicatedTimeout = 2 * time.Second
)

// pubAck is JetStream's answer to a publish.
type pubAck struct {
	Sequence uint64    `json:"seq"`
	Count    int       `json:"count"` // of an atomic batch
	Error    *APIError `json:"error"`
}

// parseAck decodes an answer. Nearly all have one form, which needs no JSON decoder; this
// is on the path of every append.
func parseAck(b []byte) (ack pubAck, err error) {
	if rest, ok := bytes.CutPrefix(b, []byte(`{"stream":"HELIX_`)); ok {
		if _, number, ok := bytes.Cut(rest, []byte(`","seq":`)); ok && bytes.IndexByte(number, '}') == len(number)-1 {
			n, err := strconv.ParseUint(string(number[:len(number)-1]), 10, 64)
			if err == nil {
				return pubAck{Sequence: n}, nil
			}
		}
	}
	err = json.Unmarshal(b, &ack)
	return ack, err
}

// BoundBatches limits the open atomic batches of the streams whose subjects have these
// prefixes.
func (l *Link) BoundBatches(subjects ...string) {
	for _, s := range subjects {
		l.batches[s] = make(chan struct{}, maxOpenBatches)
	}
}

// Publish stores messages, one by a plain publish, several by an atomic batch. It returns
// the last one's sequence when they are as durable as the log states. If the server
// refuses a batch because too many are open or a part was lost, it is sent again. Errors:
// those of an append, see appendError and transportError.
func (l *Link) Publish(ctx context.Context, messages []*nats.Msg) (last uint64, err error) {
	if l.Opts.Hook == nil {
		last, err = l.send(ctx, messages)
	} else {
		err = l.Opts.Hook(ctx, "publish "+messages[0].Subject, func(ctx context.Context) error {
			last, err = l.send(ctx, messages)
			return err
		})
	}
	if err == nil {
		err = l.awaitStored(ctx, messages[0], last)
	}
	return last, err
}

func (l *Link) send(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	began := time.Now()
	for pause := MinRefusedPause; ; pause = min(2*pause, MaxRefusedPause) {
		last, err := l.SendOnce(ctx, messages)
		if !errors.Is(err, ErrBatchRefused) {
			return last, err
		}
		if time.Since(began) > LeaderPatience {
			return 0, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		}
		if l.GroupSync() {
			if err := l.Opts.Server.Stage(); err != nil { // the place for batches may be gone
				return 0, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
			}
		}
		if err := l.Rest(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// Rest waits for pause to twice pause, so that refused requests don't stay in step, or for
// the end of ctx or of the log.
func (l *Link) Rest(ctx context.Context, pause time.Duration) error {
	return l.Sleep(ctx, pause+rand.N(pause))
}

// Sleep waits for d, or for the end of ctx or of the log.
func (l *Link) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.Closed:
		return eventlog.ErrClosed
	}
}

func (l *Link) SendOnce(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	last := messages[len(messages)-1]
	if len(messages) > 1 {
		open := l.batches[last.Subject[:strings.LastIndexByte(last.Subject, '.')]]
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-l.Closed:
			return 0, eventlog.ErrClosed
		}
		if err := l.sendAllButLast(messages); err != nil {
			return 0, transportError(err)
		}
	} else { // its headers may be from a refused batch
		for _, name := range []string{wire.HeaderBatchID, wire.HeaderBatchSequence, wire.HeaderBatchCommit} {
			delete(last.Header, name)
		}
	}
	answer, err := l.Request(ctx, last, l.Opts.answerTimeout())
	if err != nil {
		return 0, transportError(err)
	}
	ack, err := parseAck(answer.Data)
	if err != nil {
		return 0, fmt.Errorf("%w: answer: %w", eventlog.ErrOutcomeUnknown, err)
	}
	if ack.Error != nil {
		return 0, appendError(ack.Error)
	}
	if len(messages) > 1 && ack.Count != len(messages) {
		return 0, fmt.Errorf("jetstream: batch of %d was stored as %d", len(messages), ack.Count)
	}
	return ack.Sequence, nil
}

// StoreMessage publishes one message and returns its sequence. If no server accepts it,
// as in a cluster whose servers don't all know a new stream yet, it is sent again.
func (l *Link) StoreMessage(ctx context.Context, m *nats.Msg) (uint64, error) {
	began := time.Now()
	for {
		at, err := l.Publish(ctx, []*nats.Msg{m})
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) > LeaderPatience {
			return at, err
		}
		if eventlog.Sleep(ctx, settleLeast) != nil {
			return 0, err
		}
	}
}

// sendAllButLast sends messages as an atomic batch with a new id, without the last one.
func (l *Link) sendAllButLast(messages []*nats.Msg) error {
	id := nats.NewInbox()[len(nats.InboxPrefix):]
	for i, m := range messages {
		m.Header[wire.HeaderBatchID] = []string{id}
		m.Header[wire.HeaderBatchSequence] = []string{strconv.Itoa(i + 1)}
		delete(m.Header, wire.HeaderBatchCommit)
		if i == len(messages)-1 {
			m.Header[wire.HeaderBatchCommit] = []string{"1"}
			return nil
		}
		if err := l.Conn.PublishMsg(m); err != nil {
			return err
		}
	}
	return nil
}
