package eventlog

import (
	"slices"
	"strings"
)

// maxMergedBytes bounds the payload of a record that was merged from several.
const maxMergedBytes = 64 << 10

// maxBatchBytes bounds the payloads of one append of a [Writer], unless a
// single call has more.
const maxBatchBytes = 4 << 20

// batch is the calls that go together in one append. It has room for
// MaxAppendRecords and maxBatchBytes.
type batch struct {
	merge          bool
	units          []*writeUnit
	records, bytes int
	run            deltaRun // at the batch's end
}

// writeUnit is what is written all or none: one call, or several Writes of which
// records were merged.
type writeUnit struct {
	writes  []*pendingWrite
	entries []Entry
}

// follow returns the status of a root's stream that takes u in the given one.
// A sub-agent may outlive its parent's turn: what it writes is not refused, and
// neither is the chunk that reports the end of its turn to its parent's clients.
func (u *writeUnit) follow(root string, status StreamStatus) (StreamStatus, error) {
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
	return slices.ContainsFunc(b.units, func(u *writeUnit) bool { return u.writes[0].sync })
}

// fits reports whether c may go with b. What is conditional goes first: all
// that precedes it must have been observed.
func (b *batch) fits(c *pendingWrite) bool {
	if c.still != nil && len(b.units) > 0 {
		return false
	}
	return b.records == 0 || b.records+len(c.entries) <= MaxAppendRecords && b.bytes+c.bytes <= maxBatchBytes
}

// add puts c at the batch's end.
func (b *batch) add(c *pendingWrite) {
	b.bytes += c.bytes
	if !b.merge || !c.written {
		if len(c.entries) > 0 {
			b.seal()
		}
		b.records += len(c.entries)
		b.units = append(b.units, c.unit(c.entries))
		return
	}
	var u *writeUnit
	for _, e := range c.entries {
		if b.run.take(e) {
			if u == nil {
				u = b.run.unit
				u.writes = append(u.writes, c)
			}
			continue
		}
		b.seal()
		if u == nil {
			u = c.unit(c.entries[:0]) // in place: an entry never moves to a later position
			b.units = append(b.units, u)
		}
		u.entries = append(u.entries, e)
		b.records++
		if v, key := deltaOf(e); v != nil {
			b.run = deltaRun{unit: u, envelope: e.Envelope, of: key, first: v, size: len(e.Payload)}
		}
	}
}

// seal ends the run at the batch's end.
func (b *batch) seal() {
	if len(b.run.more) > 0 {
		u := b.run.unit
		u.entries[len(u.entries)-1] = b.run.merged()
	}
	b.run = deltaRun{}
}

// deltaRun is adjacent deltas that become one record, the last of a unit.
type deltaRun struct {
	unit     *writeUnit // nil: there is none
	envelope Envelope
	of       deltaKey
	first    *value
	more     []*value
	size     int // of the merged payload
}

// take adds e if it continues where r ends. If not, r has ended.
func (r *deltaRun) take(e Entry) bool {
	if r.unit == nil || e.Envelope != r.envelope {
		return false
	}
	v, key := deltaOf(e)
	if v == nil || key != r.of || r.size+len(v.quoted()) > maxMergedBytes {
		return false
	}
	r.more = append(r.more, v)
	r.size += len(v.quoted())
	return true
}

// merged returns the run as one record, with the first one's timestamp. The texts
// are in the deltas' payloads as they are in its own: none is encoded again.
func (r *deltaRun) merged() Entry {
	first := *deltaText(r.first.delta())
	length := len(first)
	for _, v := range r.more {
		length += len(*deltaText(v.delta()))
	}
	var text strings.Builder
	text.Grow(length)
	text.WriteString(first)
	payload := append(make([]byte, 0, r.size), r.first.payload[:r.first.to]...)
	for _, v := range r.more {
		text.WriteString(*deltaText(v.delta()))
		payload = append(payload, v.quoted()...)
	}
	to := len(payload)
	payload = append(payload, r.first.payload[r.first.to:]...)
	return Entry{
		Envelope: r.envelope, Payload: payload,
		value: valueOfDelta(r.first.delta(), text.String(), payload, int(r.first.from), to),
	}
}

// deltaKey is what deltas that are merged have in common, beside their
// envelopes.
type deltaKey struct {
	call string
	base Base // without the timestamp
}

// deltaOf returns e's value if e is a delta, of what a run is made. It is one only
// if NewChunk has encoded it: decoding what others have may lose something.
func deltaOf(e Entry) (v *value, key deltaKey) {
	if e.Kind != KindChunk || !e.value.isOf(e) || e.value.to == 0 {
		return nil, deltaKey{}
	}
	c := e.value.delta()
	if c.Type() != e.Type {
		return nil, deltaKey{}
	}
	switch c := c.(type) {
	case *Thinking:
		if c.IsComplete {
			return nil, deltaKey{}
		}
	case *ToolArgStreamDelta:
		key.call = c.ToolCallID
	}
	key.base = *c.base()
	key.base.Timestamp = 0
	return e.value, key
}
