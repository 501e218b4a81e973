package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// maxBatch is JetStream's limit of messages in an atomic batch.
	maxBatch = 1000
	// answerTimeout is how long one try waits for its answer; what became of
	// it is then looked up.
	answerTimeout = 5 * time.Second
)

// pubAck is JetStream's answer to a publish.
type pubAck struct {
	Sequence uint64    `json:"seq"`
	Count    int       `json:"count"` // of an atomic batch
	Error    *apiError `json:"error"`
}

// Append implements eventlog.Log.
func (l *Log) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	_, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 || len(entries) > maxBatch {
		return 0, fmt.Errorf("%w: an append takes 1 to %d records", eventlog.ErrTooLarge, maxBatch)
	}
	limit := l.Info().MaxRecordBytes
	a := &pendingAppend{session: session, expected: expected, messages: make([]*nats.Msg, len(entries))}
	for i, e := range entries {
		if len(e.Payload) > limit {
			return 0, fmt.Errorf("%w: %d bytes, at most %d", eventlog.ErrTooLarge, len(e.Payload), limit)
		}
		a.messages[i] = newMessage(subject, e)
		a.bytes += len(e.Payload)
	}
	// The comparison stands on the first message only.
	a.messages[0].Header[headerExpectedLast] = []string{strconv.FormatUint(expected, 10)}
	return l.committers[Partition(session, l.opts.Partitions)].append(ctx, a)
}

// publish stores messages: one by a plain publish, several by an atomic batch.
// It returns the last one's sequence.
func (l *Log) publish(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	last := messages[len(messages)-1]
	if len(messages) > 1 {
		if err := l.sendAllButLast(messages); err != nil {
			return 0, transportError(err)
		}
	} else { // it may have been in a batch that was refused
		for _, name := range []string{headerBatchID, headerBatchSequence, headerBatchCommit} {
			delete(last.Header, name)
		}
	}
	try, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := l.nc.RequestMsgWithContext(try, last)
	if err != nil {
		return 0, transportError(err)
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
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

// sendAllButLast makes messages an atomic batch under a fresh id.
func (l *Log) sendAllButLast(messages []*nats.Msg) error {
	id := nats.NewInbox()[len(nats.InboxPrefix):]
	for i, m := range messages {
		m.Header[headerBatchID] = []string{id}
		m.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		delete(m.Header, headerBatchCommit)
		if i == len(messages)-1 {
			m.Header[headerBatchCommit] = []string{"1"}
			return nil
		}
		if err := l.nc.PublishMsg(m); err != nil {
			return err
		}
	}
	return nil
}
