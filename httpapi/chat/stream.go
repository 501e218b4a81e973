package chat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/textstream"
	"github.com/helixd/helixd/projector/uimessage"
)

// portion says which part of the session's current assistant message a client gets.
type portion struct {
	// whole: all of it. Otherwise what the client does not have yet.
	whole bool
	after web.Position
	// begin sends the start part also to a client that has the message's
	// beginning.
	begin bool
	// shown: the client shows the message so far from a snapshot.
	shown bool
	// resync begins with a stream_resync that is not stored.
	resync bool
	// messageID is the id that the client knows the message by, or "".
	messageID string
	// always answers with a stream, even if nothing is under way and nothing is
	// left to send; else that is 204.
	always bool
	// textParts sends TextStreamParts instead of UI message parts.
	textParts bool
}

// encoder is a dialect of chat streams.
type encoder interface {
	// Start returns how a message begins.
	Start() uimessage.Frame
	// Encode takes the message's effective records from the first one on.
	Encode(r eventlog.Record) []uimessage.Frame
	// Reopen begins again what is open.
	Reopen()
	End(e uimessage.Ending) []uimessage.Frame
}

// replyWith answers with the stream of the session's current assistant message.
func (s *Routes) replyWith(w http.ResponseWriter, r *web.Request, session string, c portion) error {
	return r.Streaming(session, func(ctx context.Context) error {
		live, err := stream.Attach(ctx, s.log, session)
		if errors.Is(err, eventlog.ErrSessionNotFound) && !c.always {
			return r.Nothing(w)
		}
		if err != nil {
			return err
		}
		defer live.Leave()
		return s.streamReply(ctx, w, r, session, live, c)
	})
}

func (s *Routes) streamReply(ctx context.Context, w http.ResponseWriter, r *web.Request, session string, live *stream.Session, c portion) error {
	past := live.Past(ctx)
	t, err := live.State(ctx, s.states)
	if err != nil {
		return err
	}
	if last := c.after.Reaches(); !c.whole && last > t.Head {
		return eventlog.CursorError(ctx, s.log, session, last)
	}
	if err := s.placeInMessage(past, session, &c, replyBegins(t)); err != nil {
		return err
	}
	at := s.startOf(session, t, c)
	at.live = live.Follow
	if at.end != nil && !c.always {
		more, err := s.moreToTell(past, at, c)
		if err != nil {
			return err
		}
		if !more {
			return r.Nothing(w)
		}
	}
	return live.Answer(ctx, r.NewEventWriter(w), min(at.before, at.after.Sequence), false, func(history stream.Records) stream.Events {
		web.NameSession(w.Header(), session)
		if !c.textParts {
			w.Header().Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
		}
		return s.events(ctx, history, at)
	})
}

// placeInMessage moves the position of a client that has frames of the message's first
// record into the message. The sequence of its position may be before the message. If
// there is a chunk in between, the frames are those of an older message.
func (s *Routes) placeInMessage(ctx context.Context, session string, c *portion, begins uint64) error {
	if c.whole || c.after.Frames == 0 || c.after.Sequence >= begins {
		return nil
	}
	for r, err := range s.log.Read(ctx, session, c.after.Sequence, begins) {
		if err != nil {
			return err
		}
		if r.Kind == eventlog.KindChunk {
			c.after.Frames = 0
			return nil
		}
	}
	c.after.Sequence = begins
	return nil
}

// moreToTell reports whether a client lacks a part of a stream that has stopped: its end,
// later answers, or that a part which it has was truncated. A client without a position
// starts from the snapshot, and lacks nothing.
func (s *Routes) moreToTell(ctx context.Context, at start, c portion) (bool, error) {
	if c.whole || c.after.Sequence < at.stopped || c.after.Frames > 0 {
		return !c.whole, nil
	}
	for r, err := range s.log.Read(ctx, at.session, c.after.Sequence, at.head) {
		if err != nil {
			return false, err
		}
		if r.Type == (*fact.ResultSubmitted)(nil).Type() && !at.dead.Covers(r) {
			return true, nil
		}
		if first := firstTruncated(r); first > 0 && at.had(first) && !c.textParts { // which have no stream_resync
			return true, nil
		}
	}
	return false, nil
}

// start is what a chat stream needs of the state that it starts from. It does not keep the
// state.
type start struct {
	session, root string
	encoder       encoder           // of the message's records
	earlier       encoder           // of those before, which leave no trace in the message
	first         []uimessage.Frame // what comes before all records
	before        uint64            // the stream's records lie after it
	begins        uint64            // the message's records lie after it
	after         web.Position      // what the client has
	head          uint64
	whole         bool
	begin         bool // the start part is sent in any case
	shown         bool
	dead          eventlog.Truncations
	end           *uimessage.Ending // what comes at head instead of following
	stopped       uint64            // the record that ended it
	live          func(context.Context) stream.Records
}

// had reports whether the client has a frame of a record, or of one after it.
func (at start) had(sequence uint64) bool {
	return at.after.Sequence >= sequence || at.after.Frames > 0
}

// firstTruncated returns the first record that a marker truncates. It is 0 for other records.
func firstTruncated(r eventlog.Record) (first uint64) {
	var all eventlog.Truncations
	if all.Add(r) != nil { // the fold has refused it, too
		return 0
	}
	for _, g := range all {
		if first == 0 || g.From < first {
			first = g.From
		}
	}
	return first
}

func (s *Routes) startOf(session string, t *projector.Tree, c portion) start {
	at := start{
		session: session, root: t.SessionID, encoder: s.encoderFor(t, c), earlier: s.encoderFor(t, c), head: t.Head, whole: c.whole,
		dead:   append(slices.Clone(t.Dead), t.Left()...), // what will be truncated has no place in what begins now
		before: replyBegins(t), begins: replyBegins(t), after: c.after, end: endingOf(t), begin: c.begin || c.shown, shown: c.shown,
	}
	if at.end != nil && t.Stopped != nil {
		at.stopped = t.Stopped.At
	}
	switch {
	case c.whole && c.shown: // the snapshot has what there is
		at.after, at.whole = web.Position{Sequence: t.Head}, false
	case c.whole, c.after.Sequence < at.before && !c.begin: // of earlier messages nothing can be sent here
		at.after = web.Position{Sequence: at.before}
	case c.after.Sequence < at.before: // what its own request has appended
		at.before = c.after.Sequence
	}
	if c.resync {
		at.first = append(at.first, uimessage.Resync(t, c.after.Sequence))
	}
	return at
}

// replyBegins returns the head before the first record of the session's last
// assistant message.
func replyBegins(t *projector.Tree) uint64 {
	switch run := t.CurrentRun(); {
	case t.Turn != nil && t.Turn.Before != nil:
		return *t.Turn.Before
	case t.Turn != nil && run != nil:
		return run.StartSequence
	case t.Stopped != nil:
		return t.Stopped.Before
	}
	return 0
}

// endingOf returns how the stream has ended in this state, or nil if it continues.
func endingOf(t *projector.Tree) *uimessage.Ending {
	var end uimessage.Ending
	switch {
	case t.StreamStatus == eventlog.StreamCompleted:
		end.Outcome = uimessage.Completed
	case t.StreamStatus == eventlog.StreamTerminated:
		end.Outcome, end.Error = uimessage.Failed, stream.FailureOf(&t.Session)
		if t.Error != nil && t.Error.Code == "aborted" {
			end.Outcome = uimessage.Aborted
		}
	case t.Waits() && t.Status == projector.SessionInterrupted:
		end.Outcome = uimessage.Interrupted
	case t.Waits():
		end.Outcome = uimessage.Waiting
	default:
		return nil
	}
	return &end
}

func (s *Routes) encoderFor(t *projector.Tree, c portion) encoder {
	id := c.messageID
	if id == "" {
		id = uimessage.ReplyID(t, s.options().MessageID)
	}
	if c.textParts {
		return textstream.New(textstream.Options{Root: t.SessionID, Earlier: uimessage.Earlier(t), Cost: s.prices.Cost})
	}
	return uimessage.NewEncoder(uimessage.EncoderOptions{
		Root: t.SessionID, MessageID: id, Answered: uimessage.Answered(t), Earlier: uimessage.Earlier(t),
		StartMetadata: metadata(s.options().StartMetadata, t.SessionID), FinishMetadata: metadata(s.options().FinishMetadata, t.SessionID),
		Loose: s.options().LooseParts, Checkpoints: s.options().ExposeCheckpoints,
	})
}

// events yields the events of a chat stream. history are the records up to
// at.head, from the message's first one or the client's position on.
func (s *Routes) events(ctx context.Context, history stream.Records, at start) stream.Events {
	return func(yield func(web.Event, error) bool) {
		f := &feed{at: at, to: deliveryTo(at.after), chat: s.options(), yield: yield}
		f.send(unrecorded(at.first...))
		for r, err := range history {
			if !f.past(r, err) {
				return
			}
		}
		if !f.start() {
			return
		}
		if at.end != nil {
			f.finish(f.last.record.Sequence, f.last.frames, *at.end)
			return
		}
		for r, err := range at.live(ctx) {
			var t *projector.Tree
			if err == nil && r.Agent == at.root && stream.MayEnd(r.Envelope) {
				t, err = s.states.At(ctx, at.session, r.Sequence)
			}
			if err == nil && t != nil && endingOf(t) != nil {
				var resync eventlog.Record
				var told bool
				if resync, told, err = stream.ResyncOf(ctx, s.log, at.session, r); told { // the client is notified before the end
					f.live(r, nil, nil)
					r = resync
				}
			}
			if !f.live(r, t, err) {
				return
			}
		}
	}
}

// metadata returns the messageMetadata of a part.
func metadata(of func(agentID string) any, agent string) json.RawMessage {
	if of == nil {
		return nil
	}
	raw, err := eventlog.Marshal(of(agent))
	if err != nil || string(raw) == "null" {
		return nil
	}
	return raw
}
