package chat

import (
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/uimessage"
)

// delivery turns the frames of records into events, without those that the
// client has. Each frame has an id with which the stream can be resumed right
// after it.
type delivery struct {
	had   web.Position // what the client has
	sent  uint64       // the sequence that is fully delivered
	begun bool         // the client has a frame of the message
}

func deliveryTo(had web.Position) *delivery {
	return &delivery{had: had, sent: had.Sequence, begun: had.Frames > 0}
}

// record returns the events of a record's frames.
func (d *delivery) record(sequence uint64, frames []uimessage.Frame) []web.Event {
	if len(frames) == 0 {
		return nil
	}
	d.begun = true
	if sequence <= d.had.Sequence {
		return nil
	}
	all := make([]web.Event, len(frames))
	for i, f := range frames {
		all[i] = web.Event{ID: web.Position{Sequence: d.sent, Frames: i + 1}, Data: f}
	}
	all[len(all)-1].ID = web.Position{Sequence: sequence}
	d.sent = sequence
	skip := min(d.had.Frames, len(all))
	d.had.Frames = 0
	return all[skip:]
}

// pass notes that the client has everything up to a record. Frames that it has after
// had.Sequence are not those of a later record. Later events get ids after the record, so
// that they differ from ids of the record itself.
func (d *delivery) pass(sequence uint64) {
	if sequence > d.had.Sequence {
		d.had.Frames, d.sent = 0, max(d.sent, sequence)
	}
}

// unrecorded returns the events of frames that belong to no record. They have no id.
func unrecorded(frames ...uimessage.Frame) []web.Event {
	var all []web.Event
	for _, f := range frames {
		all = append(all, web.Event{Data: f})
	}
	return all
}
