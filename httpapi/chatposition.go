package httpapi

import (
	"math"
	"strconv"
	"strings"

	"github.com/helixd/helixd/projector/uimessage"
)

// position is how much of a chat stream a client has: all frames of the records
// up to a sequence, and some frames of the next record that makes any. As an
// SSE id it is "m", or "m.j" (aisdk.md, Resume).
type position struct {
	sequence uint64
	frames   int
}

func (p position) String() string { return string(p.append(nil)) }

// reaches returns the least sequence of the last record that the client has a
// frame of.
func (p position) reaches() uint64 {
	if p.frames > 0 && p.sequence < math.MaxUint64 {
		return p.sequence + 1
	}
	return p.sequence
}

func (p position) append(b []byte) []byte {
	b = strconv.AppendUint(b, p.sequence, 10)
	if p.frames == 0 {
		return b
	}
	return strconv.AppendInt(append(b, '.'), int64(p.frames), 10)
}

// parsePosition reads a position as it is sent, and nothing else.
func parsePosition(name, s string) (position, error) {
	whole, part, some := strings.Cut(s, ".")
	var p position
	var err error
	if p.sequence, err = parseNumber(name, whole); err == nil && some {
		p.frames, err = strconv.Atoi(part)
	}
	if err != nil || p.frames < 0 || p.String() != s {
		return position{}, invalid(name, "must be an id of the stream: a sequence such as 12, or 12.3")
	}
	return p, nil
}

// delivery turns the frames of records into events, without those that the
// client has. Each frame has an id with which the stream can be resumed right
// after it.
type delivery struct {
	had   position // what the client has
	sent  uint64   // the sequence that is fully delivered
	begun bool     // the client has a frame of the message
}

func deliveryTo(had position) *delivery {
	return &delivery{had: had, sent: had.sequence, begun: had.frames > 0}
}

// record returns the events of a record's frames.
func (d *delivery) record(sequence uint64, frames []uimessage.Frame) []event {
	if len(frames) == 0 {
		return nil
	}
	d.begun = true
	if sequence <= d.had.sequence {
		return nil
	}
	all := make([]event, len(frames))
	for i, f := range frames {
		all[i] = event{id: position{d.sent, i + 1}, data: f}
	}
	all[len(all)-1].id = position{sequence: sequence}
	d.sent = sequence
	skip := min(d.had.frames, len(all))
	d.had.frames = 0
	return all[skip:]
}

// pass says that the client lacks nothing of a record and of those before. Frames
// that it has after had.sequence are not those of a later record. What follows gets
// ids after the record, so that they differ from ids of the record itself.
func (d *delivery) pass(sequence uint64) {
	if sequence > d.had.sequence {
		d.had.frames, d.sent = 0, max(d.sent, sequence)
	}
}

// unrecorded returns events of frames that no record makes. They have no id.
func unrecorded(frames ...uimessage.Frame) []event {
	var all []event
	for _, f := range frames {
		all = append(all, event{data: f})
	}
	return all
}
