package snapshot

import (
	"context"
	"encoding/json"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// Snapshot is a session's messages and state at a sequence, from which a client starts.
type Snapshot struct {
	State    json.RawMessage     `json:"state"` // the custom state
	Messages []uimessage.Message `json:"messages"`
	// StreamSequence is n: everything here is fold(records <= n).
	StreamSequence uint64                `json:"streamSequence"`
	Status         eventlog.StreamStatus `json:"status"` // of the stream now
	Timestamp      int64                 `json:"timestamp"`
}

// Options of Take.
type Options struct {
	// IncludePartialContent puts an unfinished assistant message into
	// Messages. Without it the message is left out whole, and n is the
	// sequence before its first record, so that a client that follows from n
	// gets all of it.
	IncludePartialContent bool
	// ExcludeAtPause leaves the message out also while the session waits. By default the
	// snapshot of a waiting session includes it: there is no stream that a client could
	// follow, and the user must see what to answer.
	ExcludeAtPause bool
	// MessageID returns the messages' ids; nil: msg-{index}.
	MessageID uimessage.MessageID
	// Before is called with the state before its messages are made, and its error ends Take;
	// nil: it is not.
	Before func(*projector.Tree) error
}

// Take returns the session's snapshot. Errors: as eventlog.Log.Read; those of Before.
func (s *Store) Take(ctx context.Context, session string, o Options) (*Snapshot, error) {
	t, err := s.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	status := statusOf(&t.Session)
	include := o.IncludePartialContent || t.Waits() && !o.ExcludeAtPause
	if turn := t.Turn; turn != nil && turn.Before != nil && !include {
		if t, err = s.At(ctx, session, *turn.Before); err != nil {
			return nil, err
		}
	}
	if o.Before != nil {
		if err := o.Before(t); err != nil {
			return nil, err
		}
	}
	return &Snapshot{
		State: t.CustomState.Bytes(), Messages: uimessage.Render(t, o.MessageID), StreamSequence: t.Head,
		Status: status, Timestamp: time.Now().UnixMilli(),
	}, nil
}

// statusOf returns the status by which a client decides whether to follow the stream: a
// session that waits is paused, whatever the status of its stream.
func statusOf(s *projector.Session) eventlog.StreamStatus {
	if s.StreamStatus == eventlog.StreamActive &&
		(s.Status == projector.SessionInterrupted || s.Status == projector.SessionPaused) {
		return eventlog.StreamWaiting
	}
	return s.StreamStatus
}
