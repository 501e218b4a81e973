package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Streams manages the streams of a log for Go programs that produce their own
// chunks. Each session tree has one stream.
//
// Its writers hold no claim: any number may write to a stream at the same time,
// in this process or in others, and all records have one order. Each append is a
// compare-and-swap at the head that the writer knows. If another writer was
// first, it reads the new records and tries again until its context ends. Written
// chunks are durable, as the log's Info says, and are there once. A
// stream that has ended or failed refuses writes with ErrStreamEnded until a new run
// re-activates it.
//
// A log never restarts: a new turn follows the last one, and sequences keep rising.
// [Streams.ResetStream] empties a stream with a marker.
type Streams struct{ log Log }

// NewStreams returns the streams of log.
func NewStreams(log Log) *Streams { return &Streams{log: log} }

// StreamInfo describes a stream.
type StreamInfo struct {
	Status StreamStatus `json:"status"`
	// LatestSequence is the head: a reader that starts there gets new records only.
	LatestSequence uint64 `json:"latestSequence"`
}

// CreateWriter returns a writer of chunks of one agent. The agent's id is the
// session's, or that of a sub-agent. The session begins with the first chunk.
// The error is a *ValidationError.
func (s *Streams) CreateWriter(session, agentID, agentType string) (*StreamWriter, error) {
	if err := ValidateClientSessionID(session); err != nil {
		return nil, err
	}
	for field, id := range map[string]string{"agentId": agentID, "agentType": agentType} {
		if reason := idProblem(id, MaxID); reason != "" {
			return nil, &ValidationError{Field: field, Reason: reason}
		}
	}
	return &StreamWriter{
		agentID: agentID, agentType: agentType, sendLock: make(chan struct{}, 1), end: newStreamEnd(s.log, session),
	}, nil
}

// Reader attaches a reader that begins with the first chunk. Errors: as
// [Log.Follow].
func (s *Streams) Reader(ctx context.Context, session string) (*Reader, error) {
	return NewReader(ctx, s.log, session, 0)
}

// ResumableReader attaches a reader after a sequence. Errors: as [Log.Follow].
func (s *Streams) ResumableReader(ctx context.Context, session string, from uint64) (*Reader, error) {
	return NewReader(ctx, s.log, session, from)
}

// EndStream completes a stream. output is JSON, or nil. Errors:
// ErrSessionNotFound, ErrStreamEnded, *ValidationError.
func (s *Streams) EndStream(ctx context.Context, session string, output json.RawMessage) error {
	return s.tell(ctx, session, &fact.StreamEnd{StreamID: session, Timestamp: time.Now().UnixMilli(), FinalOutput: output})
}

// FailStream ends a stream with an error. Errors: ErrSessionNotFound,
// ErrStreamEnded.
func (s *Streams) FailStream(ctx context.Context, session, message string) error {
	return s.tell(ctx, session, &fact.StreamFailed{Error: message, Base: s.base(session)})
}

// PauseStream says that a stream waits; it still takes chunks. Errors:
// ErrSessionNotFound, ErrStreamEnded.
func (s *Streams) PauseStream(ctx context.Context, session, reason string) error {
	return s.tell(ctx, session, &fact.StreamPaused{Reason: reason, Base: s.base(session)})
}

// ResumeStream ends a pause. Errors: ErrSessionNotFound, ErrStreamEnded.
func (s *Streams) ResumeStream(ctx context.Context, session string) error {
	return s.tell(ctx, session, &fact.StreamResumed{Base: s.base(session)})
}

func (s *Streams) base(session string) fact.Base {
	return fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli()}
}

// tell appends a fact to a stream that exists.
func (s *Streams) tell(ctx context.Context, session string, f fact.Fact) error {
	entries, err := entriesOf(session, f)
	if err != nil {
		return err
	}
	t := newStreamEnd(s.log, session)
	if _, err := t.catchUp(ctx); err != nil {
		return err
	}
	_, err = t.append(ctx, entries)
	return err
}

// Info returns a stream's status and latest sequence. It reads the session.
// Errors: ErrSessionNotFound.
func (s *Streams) Info(ctx context.Context, session string) (StreamInfo, error) {
	t := newStreamEnd(s.log, session)
	if _, err := t.catchUp(ctx); err != nil {
		return StreamInfo{}, err
	}
	return StreamInfo{Status: t.life.now(), LatestSequence: t.head}, nil
}

// AllChunks yields the chunks that are there now and not truncated. Errors: as
// [Log.Read].
func (s *Streams) AllChunks(ctx context.Context, session string) Stream {
	return Chunks(Effective(ctx, s.log, session, 0, 0))
}

// CleanupToStep is the function [CleanupToStep] on the streams' log.
func (s *Streams) CleanupToStep(ctx context.Context, session, agent string, step int, minSequence uint64) (*Truncated, error) {
	return CleanupToStep(ctx, s.log, session, agent, step, minSequence)
}

// ResetStream empties a stream, so that it can be written from the beginning.
// One marker truncates all chunks of all agents and the stream's pauses and ends, and
// the stream is active again. Sequences keep rising, so that cursors stay valid; attached
// readers are notified as after a clean-up. Messages, state and runs do not change:
// [Rollback] changes them. It returns the marker, or nil if there was nothing to truncate.
//
// Errors: ErrSessionNotFound; ErrOutcomeUnknown if ctx ended too early.
func (s *Streams) ResetStream(ctx context.Context, session string) (*Truncated, error) {
	return resetStream(ctx, s.log, session)
}

// StreamWriter writes chunks of one agent. Several goroutines may use it; its
// writes are sent one after the other.
type StreamWriter struct {
	agentID, agentType string

	sendLock chan struct{} // held while appending
	end      *streamEnd
}

// Write appends chunks, all or none, and returns the last one's sequence when
// they are durable. They must be of the writer's agent, and no lifecycle
// chunks ([RuntimeOnly]).
//
// Errors: *ValidationError; ErrStreamEnded; ErrTooLarge, also for more than
// [MaxAppendRecords] chunks; ErrSessionNotFound if the session was erased since
// the writer's last write, even if its id is in use again; ErrErasing;
// ErrOutcomeUnknown if ctx ended too early.
func (w *StreamWriter) Write(ctx context.Context, chunks ...Chunk) (uint64, error) {
	entries := make([]Entry, len(chunks))
	for i, c := range chunks {
		var err error
		if entries[i], err = w.entry(c); err != nil {
			return 0, err
		}
	}
	select {
	case w.sendLock <- struct{}{}:
		defer func() { <-w.sendLock }()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if w.end.head == 0 {
		if _, err := w.end.catchUp(ctx); err != nil && !errors.Is(err, ErrSessionNotFound) {
			return 0, err
		}
	}
	return w.end.append(ctx, entries)
}

func (w *StreamWriter) entry(c Chunk) (Entry, error) {
	switch b := c.base(); {
	case b.AgentID != w.agentID:
		return Entry{}, &ValidationError{Type: c.Type(), Field: "agentId", Reason: "must be the writer's"}
	case b.AgentType != w.agentType:
		return Entry{}, &ValidationError{Type: c.Type(), Field: "agentType", Reason: "must be the writer's"}
	case RuntimeOnly(c.Type()):
		return Entry{}, &ValidationError{Type: c.Type(), Field: "type", Reason: "is written by the runtime only"}
	}
	return NewChunk(c, Labels{})
}

// streamEnd is the end of a session's log as far as a writer without a claim knows it.
type streamEnd struct {
	log     Log
	session string
	head    uint64
	life    lifecycle
}

func newStreamEnd(log Log, session string) *streamEnd {
	return &streamEnd{log: log, session: session, life: lifecycle{session: session}}
}

// catchUp learns what is new.
func (t *streamEnd) catchUp(ctx context.Context) (uint64, error) {
	return reading(t.log, t.session, t.head, true, t.see)(ctx)
}

func (t *streamEnd) see(r Record) error {
	if err := t.life.see(r); err != nil {
		return err
	}
	t.head = r.Sequence
	return nil
}

// append appends entries after all others, unless the stream has ended, and returns
// the last one's sequence.
func (t *streamEnd) append(ctx context.Context, entries []Entry) (uint64, error) {
	if len(entries) == 0 {
		return t.head, nil
	}
	last, err := Update(ctx, t.log, t.session, UpdateOptions{
		Writer: randomID("stream:"), Head: t.head, Current: t.head == 0, CatchUp: t.catchUp,
	}, func(uint64) ([]Entry, error) {
		status := t.life.now()
		for _, e := range entries {
			if status.Refuses(e.Envelope) {
				return nil, ErrStreamEnded
			}
			status = status.After(e.Envelope)
		}
		return entries, nil
	})
	if err != nil {
		return 0, err
	}
	for i, e := range entries {
		if err := t.see(Record{Sequence: last + 1 + uint64(i) - uint64(len(entries)), Entry: e}); err != nil {
			return 0, err
		}
	}
	return last, nil
}
