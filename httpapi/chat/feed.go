package chat

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// feed sends one chat stream. Its methods report whether the stream continues.
type feed struct {
	at      start
	to      *delivery
	chat    *Options
	yield   func(web.Event, error) bool
	started bool
	left    bool // the client has, or the stream is finished
	// truncated is the first record that the last marker so far truncates; 0: there is no marker.
	truncated uint64
	// last is the last record so far of a stream that has stopped. Its frames
	// wait for those of the end, which are this record's, too.
	last struct {
		record eventlog.Record
		frames []uimessage.Frame
	}
	passed uint64 // the record of a pass that waits for last
}

func (f *feed) send(events []web.Event) bool {
	for _, e := range events {
		if f.left = f.left || !f.yield(e, nil); f.left {
			return false
		}
	}
	return !f.left
}

func (f *feed) fail(err error) bool {
	if !f.left {
		f.left = true
		f.yield(web.Event{}, err)
	}
	return false
}

// start sends the beginning of the message to a client that has no frame of it.
func (f *feed) start() bool {
	if f.started {
		return !f.left
	}
	f.started = true
	if f.at.shown {
		f.at.encoder.Reopen()
	}
	if f.at.begin || !f.to.begun {
		return f.send(unrecorded(f.at.encoder.Start()))
	}
	return !f.left
}

// past sends a record up to at.head.
func (f *feed) past(r eventlog.Record, err error) bool {
	lacks := r.Sequence > f.at.after.Sequence
	if first := firstTruncated(r); first > 0 {
		f.truncated = first
	}
	switch {
	case err != nil:
		return f.fail(err)
	case lacks && !f.start():
		return false
	case f.at.dead.Covers(r):
		if r.Kind == eventlog.KindChunk {
			f.pass(r.Sequence)
		}
		return true
	case r.Type == (*eventlog.StreamResync)(nil).Type() && (f.at.whole || !f.at.had(f.truncated)):
		f.pass(r.Sequence)
		return true // the client has nothing to load again
	}
	frames := f.encode(r)
	if f.at.end == nil || !lacks || r.Sequence < f.at.stopped {
		return f.deliver(r, frames)
	}
	if len(frames) == 0 && r.Sequence > f.at.stopped {
		if isMarker(r) {
			f.pass(r.Sequence)
		}
		return true
	}
	before := f.last
	f.last.record, f.last.frames = r, frames
	more := f.deliver(before.record, before.frames)
	f.to.pass(f.passed)
	return more
}

// pass is delivery.pass when the last record, if one waits, is delivered.
func (f *feed) pass(sequence uint64) {
	if f.passed = sequence; f.last.record.Sequence == 0 {
		f.to.pass(sequence)
	}
}

func isMarker(r eventlog.Record) bool { return r.Type == (*eventlog.Truncated)(nil).Type() }

// live sends a record after at.head. If the record may end the stream, t is the state with
// it.
func (f *feed) live(r eventlog.Record, t *projector.Tree, err error) bool {
	if err != nil {
		return f.fail(err)
	}
	frames := f.encode(r)
	if t != nil {
		if end := endingOf(t); end != nil {
			f.finish(r.Sequence, frames, *end)
			return false
		}
	}
	return f.deliver(r, frames)
}

// deliver sends the frames of a record. The frames of a truncation marker close the open
// blocks; how many are open depends on whether the client saw the truncated records.
func (f *feed) deliver(r eventlog.Record, frames []uimessage.Frame) bool {
	more := f.send(f.to.record(r.Sequence, frames))
	if isMarker(r) {
		f.to.pass(r.Sequence)
	}
	return more
}

func (f *feed) encode(r eventlog.Record) []uimessage.Frame {
	if f.chat.hides(r) {
		return nil
	}
	if r.Sequence <= f.at.begins { // a client that resumes in the message does not get it
		return f.at.earlier.Encode(r)
	}
	return f.at.encoder.Encode(r)
}

// finish sends the frames of the record that ends the stream, and the end. If sequence is
// 0, the client has all records, and the end has no id.
func (f *feed) finish(sequence uint64, frames []uimessage.Frame, end uimessage.Ending) {
	ending := f.at.encoder.End(end)
	if sequence > 0 {
		f.send(f.to.record(sequence, append(frames, ending...)))
	} else {
		f.send(unrecorded(ending...))
	}
	f.send([]web.Event{{Data: []byte("[DONE]")}})
}
