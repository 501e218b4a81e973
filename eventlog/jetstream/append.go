package jetstream

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
)

const (
	// maxOpenBatches is how many atomic batches a node has open on a stream. The
	// server takes 50 from all nodes together; a batch beyond that is refused, and
	// sent again.
	maxOpenBatches = 8
	// Pauses before what the server refused for the moment is sent again.
	minRefusedPause = time.Millisecond
	maxRefusedPause = 20 * time.Millisecond
	// answerTimeout is how long one try waits for its answer where that may be
	// lost; what became of it is then looked up.
	answerTimeout = 5 * time.Second
	// replicatedTimeout is answerTimeout of an append on several servers, where
	// what comes between two leaders is dropped.
	replicatedTimeout = 2 * time.Second
)

func (o Options) answerTimeout() time.Duration {
	switch {
	case o.restores != nil: // it has no second try
		return leaderPatience
	case o.Replicas > 1:
		return replicatedTimeout
	}
	return answerTimeout
}

// pubAck is JetStream's answer to a publish.
type pubAck struct {
	Sequence uint64    `json:"seq"`
	Count    int       `json:"count"` // of an atomic batch
	Error    *apiError `json:"error"`
}

// parseAck reads an answer. Nearly all are of one form, which needs no JSON
// decoder: on the path of every append that counts.
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

// Append implements eventlog.Log.
func (l *Log) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	began := time.Now()
	last, err := l.append(ctx, session, expected, entries)
	l.metrics.appended(began, entries, err)
	return last, err
}

// createTries is how often an append that creates a session begins again because an erasure
// was under way.
const createTries = 10

func (l *Log) append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (last uint64, err error) {
	for range createTries {
		last, err = l.appendOnce(ctx, session, expected, entries)
		if !errors.Is(err, errBlobsTaken) {
			break
		}
	}
	return last, err
}

func (l *Log) appendOnce(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	_, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	if why := l.refuses(ctx.Value(freeing{}) != nil); why != "" {
		return 0, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	if len(entries) == 0 || len(entries) > eventlog.MaxAppendRecords {
		return 0, fmt.Errorf("%w: an append takes 1 to %d records", eventlog.ErrTooLarge, eventlog.MaxAppendRecords)
	}
	for _, e := range entries {
		if len(e.Payload) > eventlog.MaxPayload {
			return 0, fmt.Errorf("%w: %d bytes, at most %d", eventlog.ErrTooLarge, len(e.Payload), eventlog.MaxPayload)
		}
	}
	if err := l.holds.Wait(ctx, session); err != nil {
		return 0, err
	}
	if expected == 0 {
		// A purge may have left nothing in the log to compare with.
		if s, _, err := l.lastSegment(ctx, session); err != nil {
			return 0, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		} else if s != nil {
			return 0, &eventlog.ConflictError{Head: s.last()}
		}
	} else if err := l.checkExpected(ctx, session, expected); err != nil {
		return 0, err
	}
	a, err := l.newAppend(ctx, session, subject, expected, entries)
	var last uint64
	if err == nil {
		last, err = l.compareAppend(ctx, a)
	}
	if refused, ok := errors.AsType[*eventlog.ConflictError](err); ok && refused.Head < expected && !l.endsBefore(ctx, session, expected) {
		err = fmt.Errorf("%w: refused by a server that may lead no more: %w", eventlog.ErrOutcomeUnknown, errStaleLeader)
	}
	if err == nil {
		err = l.confirmBlobs(ctx, a, last)
	}
	if err != nil {
		if last > 0 && errors.Is(err, eventlog.ErrOutcomeUnknown) {
			l.announceLate(a, last)
		}
		l.dropBlobs(ctx, a, err)
		return last, err
	}
	l.checked.add(session, last)
	l.announce(a, last)
	l.sealerOf(session).note(session, expected, last, a.records)
	return last, nil
}

// compareAppend stores a if its expected record is the session's last one, also if only a segment
// still has that.
func (l *Log) compareAppend(ctx context.Context, a *pendingAppend) (last uint64, err error) {
	session, expected := a.session, a.expected
	c := l.committers[l.partitionOf(session)]
	if expected > 0 && expected < c.begins.Load() {
		err = &eventlog.ConflictError{} // a purge has left nothing to compare with
	} else {
		last, err = c.compare(ctx, a)
	}
	if refused, conflict := errors.AsType[*eventlog.ConflictError](err); conflict && expected == 0 && refused.Head > 0 {
		if _, _, herr := l.head(ctx, session); errors.Is(herr, eventlog.ErrSessionNotFound) { // it may have been a stray
			last, err = c.compare(ctx, a)
		}
	}
	if refused, conflict := errors.AsType[*eventlog.ConflictError](err); conflict && expected > 0 {
		head, inLog, herr := l.head(ctx, session)
		switch {
		case herr != nil:
		case !inLog && head == expected:
			a.followPurged()
			if last, err = c.compare(ctx, a); err == nil {
				err = l.confirmBehind(ctx, session, last)
			}
		default:
			refused.Head = head
		}
	}
	return last, err
}

// confirmBehind reports of an append that followed a purged record whether the session
// was erased since the segments were asked: then it is a stray, and dropped.
func (l *Log) confirmBehind(ctx context.Context, session string, last uint64) error {
	if _, _, err := l.head(ctx, session); err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	there, err := l.inLog(ctx, session, last)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	case !there:
		return eventlog.ErrSessionNotFound
	}
	return nil
}

// newAppend makes the messages of an append. Large payloads are stored first;
// with an error it returns what was stored.
func (l *Log) newAppend(ctx context.Context, session, subject string, expected uint64, entries []eventlog.Entry) (*pendingAppend, error) {
	a := &pendingAppend{
		session: session, expected: expected, ctx: ctx,
		messages: make([]*nats.Msg, len(entries)), records: make([]stored, len(entries)),
	}
	for i, e := range entries {
		r := stored{Record: eventlog.Record{Entry: e}, linked: true}
		if len(e.Payload) > l.inline {
			ref, err := l.appendBlob(ctx, a, e.Payload)
			if err != nil {
				return a, err
			}
			r.blob, r.Payload = ref.String(), ref.placeholder(e.Type)
		}
		a.records[i] = r
		a.messages[i] = newMessage(subject, r, l.groupSync()) // else the server republishes what it stores
		a.bytes += len(r.Payload)
	}
	if expected == 0 && len(a.blobs) > 0 {
		for _, m := range a.messages {
			m.Header[headerSince] = []string{strconv.FormatUint(a.since, 10)}
		}
	}
	// The comparison stands on the first message only.
	a.messages[0].Header[headerExpectedLast] = []string{strconv.FormatUint(expected, 10)}
	return a, nil
}

// publish stores messages, and returns when they are as durable as the log says: one by
// a plain publish, several by an atomic batch.
// It returns the last one's sequence. A batch that the server refuses, because
// too many are open or because a part was lost, is sent again.
func (l *Log) publish(ctx context.Context, messages []*nats.Msg) (last uint64, err error) {
	if l.opts.hook == nil {
		last, err = l.send(ctx, messages)
	} else {
		err = l.opts.hook(ctx, "publish "+messages[0].Subject, func(ctx context.Context) error {
			last, err = l.send(ctx, messages)
			return err
		})
	}
	if err == nil {
		err = l.awaitStored(ctx, messages[0], last)
	}
	return last, err
}

func (l *Log) send(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	began := time.Now()
	for pause := minRefusedPause; ; pause = min(2*pause, maxRefusedPause) {
		last, err := l.sendOnce(ctx, messages)
		if !errors.Is(err, errBatchRefused) {
			return last, err
		}
		if time.Since(began) > leaderPatience {
			return 0, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
		}
		if err := l.rest(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// rest waits for about pause, or for the end of ctx or of the log.
func (l *Log) rest(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause + rand.N(pause)) // not in step with others that were refused
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.closed:
		return eventlog.ErrClosed
	}
}

func (l *Log) sendOnce(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	last := messages[len(messages)-1]
	if len(messages) > 1 {
		open := l.batches[last.Subject[:strings.LastIndexByte(last.Subject, '.')]]
		select {
		case open <- struct{}{}:
			defer func() { <-open }()
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-l.closed:
			return 0, eventlog.ErrClosed
		}
		if err := l.sendAllButLast(messages); err != nil {
			return 0, transportError(err)
		}
	} else { // it may have been in a batch that was refused
		for _, name := range []string{headerBatchID, headerBatchSequence, headerBatchCommit} {
			delete(last.Header, name)
		}
	}
	answer, err := l.request(ctx, last, l.opts.answerTimeout())
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

// store publishes one message. While nobody is there to take it, as on a
// cluster whose servers have not all heard of a new stream, it is sent again.
func (l *Log) store(ctx context.Context, m *nats.Msg) (uint64, error) {
	began := time.Now()
	for {
		at, err := l.publish(ctx, []*nats.Msg{m})
		if !errors.Is(err, nats.ErrNoResponders) || time.Since(began) > leaderPatience {
			return at, err
		}
		select {
		case <-time.After(settleLeast):
		case <-ctx.Done():
			return 0, err
		}
	}
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
