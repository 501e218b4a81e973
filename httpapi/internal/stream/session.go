package stream

import (
	"context"
	"iter"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

type (
	// Records are records of a session, in order. An error is last.
	Records = iter.Seq2[eventlog.Record, error]
	// Events are the events of a stream. An error is last.
	Events = iter.Seq2[web.Event, error]
)

// Session is a session that a client follows. Its history ends at Head; no record is missed
// or read twice between the history and the live records.
type Session struct {
	eventlog.Attachment
	log     eventlog.Log
	session string
}

// Attach attaches to a session. The caller leaves. Errors: as eventlog.Log.Head.
func Attach(ctx context.Context, log eventlog.Log, session string) (*Session, error) {
	live, err := eventlog.Attach(ctx, log, session)
	return &Session{live, log, session}, err
}

// Attached calls f, which answers with a stream of the session's records, while the request is
// attached to the session. Errors: as web.Request.Streaming, Attach and f.
func Attached(r *web.Request, log eventlog.Log, session string, f func(context.Context, *Session) error) error {
	return r.Streaming(session, func(ctx context.Context) error {
		s, err := Attach(ctx, log, session)
		if err != nil {
			return err
		}
		defer s.Leave()
		return f(ctx, s)
	})
}

// Past returns a context for reads of the history: the head is read once.
func (s *Session) Past(ctx context.Context) context.Context {
	return eventlog.WithHead(ctx, s.session, s.Head)
}

// State returns the state at the head. The log may have grown since the session was
// attached to: the history then ends at the state.
func (s *Session) State(ctx context.Context, states *snapshot.Store) (*projector.Tree, error) {
	t, err := states.Head(s.Past(ctx), s.session)
	if err == nil {
		s.Head = t.Head
	}
	return t, err
}

// History yields the records up to Head after a sequence.
func (s *Session) History(ctx context.Context, after uint64) Records {
	return upTo(s.Past(ctx), s.log, s.session, after, s.Head)
}

// upTo yields a session's records after a sequence and up to another.
func upTo(ctx context.Context, log eventlog.Log, session string, after, last uint64) Records {
	if after >= last { // to the log, a bound of 0 would mean its head
		return none
	}
	return log.Read(ctx, session, after, last)
}

// Follow yields the records after Head as they come. It is called at most once.
func (s *Session) Follow(ctx context.Context) Records {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range s.Attachment.Follow(ctx) {
			if (err != nil || r.Sequence > s.Head) && !yield(r, err) {
				return
			}
		}
	}
}

// Since yields the records after a sequence, the live ones as they come.
func (s *Session) Since(ctx context.Context, after uint64) Records {
	return concat(s.History(ctx, after), s.Follow(ctx))
}

// ResyncOf returns the stream_resync that was appended with a rollback's marker, false if there
// is none or if the record is not such a marker. The marker may end the stream before it.
func ResyncOf(ctx context.Context, log eventlog.Log, session string, marker eventlog.Record) (eventlog.Record, bool, error) {
	if !isMarker(marker.Envelope) {
		return eventlog.Record{}, false, nil
	}
	head, err := log.Head(ctx, session)
	if err != nil {
		return eventlog.Record{}, false, err
	}
	for r, err := range upTo(ctx, log, session, marker.Sequence, head) {
		switch {
		case err != nil:
			return eventlog.Record{}, false, err
		case r.Type == (*eventlog.StreamResync)(nil).Type() && r.Agent == marker.Agent:
			return r, true, nil
		case r.Type != (*eventlog.StepDiscarded)(nil).Type():
			return eventlog.Record{}, false, nil
		}
	}
	return eventlog.Record{}, false, nil
}

// Answer answers with the events of the records after a sequence: those up to Head and, if
// follows, live ones. It reads the first record before it answers: only then does a read
// fail whose records retention has removed, and the error is Answer's.
func (s *Session) Answer(ctx context.Context, out *web.EventWriter, after uint64, follows bool, events func(Records) Events) error {
	live := Records(none)
	if follows {
		live = s.Follow(ctx)
	}
	return answer(ctx, out, s.session, s.History(ctx, after), live, events)
}

// answer is Session.Answer with the events of history, then of live records.
func answer(ctx context.Context, out *web.EventWriter, session string, history, live Records, events func(Records) Events) error {
	next, stop := iter.Pull2(history)
	defer stop()
	r, err, ok := next()
	if err != nil {
		return err
	}
	var records Records = func(yield func(eventlog.Record, error) bool) {
		for ok && yield(r, err) {
			r, err, ok = next()
		}
	}
	out.Send(ctx, session, events(concat(records, live)))
	return nil
}

// none yields no records.
func none(func(eventlog.Record, error) bool) {}

// concat yields the records of a, then those of b.
func concat(a, b Records) Records {
	return func(yield func(eventlog.Record, error) bool) {
		for _, records := range []Records{a, b} {
			for r, err := range records {
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}
