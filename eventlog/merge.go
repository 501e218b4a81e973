package eventlog

import (
	"bytes"
	"slices"
	"strings"
)

// MaxMergedBytes bounds the payload of a record that was merged from several.
const MaxMergedBytes = 64 << 10

// maxBatchBytes bounds the payloads of one append of a [Writer], unless a
// single call has more.
const maxBatchBytes = 4 << 20

// batch is the calls that go together in one append. It has room for
// MaxAppendRecords and maxBatchBytes.
type batch struct {
	merge          bool
	units          []*unit
	records, bytes int
	run            *run // at the batch's end
}

// unit is what is written all or none: one call, or several Writes of which
// records were merged.
type unit struct {
	calls   []*call
	entries []Entry
}

// follow returns the status of a root's stream that takes u in the given one.
// A sub-agent may outlive its parent's turn: what it writes is not refused, and
// neither is the chunk that reports the end of its turn to its parent's clients.
func (u *unit) follow(root string, status StreamStatus) (StreamStatus, error) {
	for _, e := range u.entries {
		if e.Agent != root || e.Kind == KindChunk && e.Type == (*SubAgentEnd)(nil).Type() {
			continue
		}
		if status.Refuses(e.Envelope) {
			return status, ErrStreamEnded
		}
		status = status.After(e.Envelope)
	}
	return status, nil
}

// syncs reports whether a call of b wants to know what others have written.
func (b *batch) syncs() bool {
	return slices.ContainsFunc(b.units, func(u *unit) bool { return u.calls[0].sync })
}

// fits reports whether c may go with b. What is conditional goes first: all
// that precedes it must have been observed.
func (b *batch) fits(c *call) bool {
	if c.still != nil && len(b.units) > 0 {
		return false
	}
	return b.records == 0 || b.records+len(c.entries) <= MaxAppendRecords && b.bytes+c.bytes <= maxBatchBytes
}

// add puts c at the batch's end.
func (b *batch) add(c *call) {
	b.bytes += c.bytes
	if !b.merge || !c.written {
		if len(c.entries) > 0 {
			b.seal()
		}
		b.records += len(c.entries)
		b.units = append(b.units, &unit{calls: []*call{c}, entries: c.entries})
		return
	}
	var u *unit
	for _, e := range c.entries {
		if b.run.take(e) {
			if u == nil {
				u = b.run.unit
				u.calls = append(u.calls, c)
			}
			continue
		}
		b.seal()
		if u == nil {
			u = &unit{calls: []*call{c}}
			b.units = append(b.units, u)
		}
		u.entries = append(u.entries, e)
		b.records++
		if isDelta(e) {
			b.run = &run{unit: u, entries: []Entry{e}}
		}
	}
}

// seal ends the run at the batch's end.
func (b *batch) seal() {
	if b.run == nil {
		return
	}
	u := b.run.unit
	u.entries = append(u.entries[:len(u.entries)-1], b.run.merged()...)
	b.run = nil
}

// run is adjacent deltas that become one record, the last of a unit.
type run struct {
	unit    *unit
	entries []Entry
	first   *delta // the first entry, once a second one is looked at
	text    strings.Builder
	size    int // of the merged payload
}

// take adds e if it goes on where r ends. If not, r has ended.
func (r *run) take(e Entry) bool {
	if r == nil || e.Envelope != r.entries[0].Envelope {
		return false
	}
	if r.first == nil {
		if r.first = deltaOf(r.entries[0]); r.first == nil {
			return false
		}
		r.text.WriteString(*r.first.text)
		r.size = len(r.entries[0].Payload)
	}
	next := deltaOf(e)
	if next == nil || next.of != r.first.of || r.size+next.size > MaxMergedBytes {
		return false
	}
	r.entries = append(r.entries, e)
	r.text.WriteString(*next.text)
	r.size += next.size
	return true
}

// merged returns the run as one record, with the first one's timestamp.
func (r *run) merged() []Entry {
	if len(r.entries) == 1 {
		return r.entries
	}
	*r.first.text = r.text.String()
	payload, err := EncodeChunk(r.first.chunk)
	if err != nil {
		return r.entries // as they came: each of them is valid
	}
	return []Entry{{Envelope: r.entries[0].Envelope, Payload: payload}}
}

// delta is a chunk that can be merged with its like.
type delta struct {
	of    deltaKey
	chunk Chunk
	text  *string // in chunk
	size  int     // of the text as JSON
}

// deltaKey is what deltas that are merged have in common, beside their
// envelopes.
type deltaKey struct {
	call string
	base Base // without the timestamp
}

// isDelta tells by its type whether e may be a delta.
func isDelta(e Entry) bool {
	switch e.Type {
	case (*TextDelta)(nil).Type(), (*Thinking)(nil).Type(), (*ToolArgStreamDelta)(nil).Type():
		return e.Kind == KindChunk
	}
	return false
}

// deltaOf returns e as a delta; nil if it is none, or if its payload is not
// what the codec writes: then decoding it may lose something.
func deltaOf(e Entry) *delta {
	c, err := e.Chunk()
	if err != nil {
		return nil
	}
	d := &delta{chunk: c}
	switch c := c.(type) {
	case *TextDelta:
		d.text = &c.Delta
	case *Thinking:
		if c.IsComplete {
			return nil
		}
		d.text = &c.Content
	case *ToolArgStreamDelta:
		d.text, d.of.call = &c.Delta, c.ToolCallID
	default:
		return nil
	}
	canonical, err := EncodeChunk(c)
	if err != nil || !bytes.Equal(canonical, e.Payload) {
		return nil
	}
	quoted, err := marshalPlain(*d.text)
	if err != nil {
		return nil
	}
	d.size = len(quoted) - len(`""`)
	d.of.base = BaseOf(c)
	d.of.base.Timestamp = 0
	return d
}
