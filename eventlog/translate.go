package eventlog

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// TranslateRestore returns a marker's Restore with its sequences mapped; package
// projector, which makes and reads it, has one.
type TranslateRestore func(marker *Truncated, s *Sequences) (json.RawMessage, error)

// refers reports whether the payload of a record of a known type contains
// sequences of others.
func refers(e Envelope) bool {
	return e.Kind == KindFact && e.Type == (*Truncated)(nil).Type() ||
		e.Kind == KindChunk && e.Type == (*StreamResync)(nil).Type()
}

// translated returns the payload of a record that refers to others with their
// new sequences. Of its bytes only numbers change, and ranges that lie between
// all records go. The error is a [*ValidationError].
func translated(e Entry, s *Sequences, restore TranslateRestore) ([]byte, error) {
	t := translator{sequences: s, restore: restore}
	if e.Kind == KindChunk {
		if _, err := e.Chunk(); err != nil {
			return nil, untranslatable(e)
		}
		return rewriteObject(e.Payload, t.resync)
	}
	f, err := e.Fact()
	marker, ok := f.(*Truncated)
	if err != nil || !ok {
		return nil, untranslatable(e)
	}
	t.truncated = marker
	return rewriteObject(e.Payload, t.marker)
}

func untranslatable(e Entry) error {
	return &ValidationError{Type: e.Type, Field: "data", Reason: "can't be read, so its sequences can't be translated"}
}

type translator struct {
	sequences *Sequences
	restore   TranslateRestore
	truncated *Truncated
}

// encoding/json takes any spelling of a member's name, and the last of several:
// all of them are translated.

func (t translator) resync(name string, value json.RawMessage) (json.RawMessage, error) {
	if strings.EqualFold(name, "fromSequence") {
		return mapNumber(value, t.sequences.UpTo)
	}
	return value, nil
}

func (t translator) marker(name string, value json.RawMessage) (json.RawMessage, error) {
	switch strings.ToLower(name) {
	case "atsequence", "minsequence", "aftersequence":
		return mapNumber(value, t.sequences.UpTo)
	case "ranges":
		return t.ranges(value)
	case "restore":
		if t.restore == nil || !isObject(value) {
			return value, nil
		}
		return t.restore(t.truncated, t.sequences)
	}
	return value, nil
}

func (t translator) ranges(value json.RawMessage) (json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(value, &items); err != nil || len(items) == 0 {
		return value, err
	}
	left := []json.RawMessage{}
	for _, item := range items {
		var g Range
		if err := json.Unmarshal(item, &g); err != nil {
			return nil, err
		}
		from, to := t.sequences.From(g.From), t.sequences.UpTo(g.To)
		if from == 0 || from > to {
			continue // it truncates nothing
		}
		item, err := rewriteObject(item, func(name string, value json.RawMessage) (json.RawMessage, error) {
			switch strings.ToLower(name) {
			case "from":
				return mapNumber(value, func(uint64) uint64 { return from })
			case "to":
				return mapNumber(value, func(uint64) uint64 { return to })
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
		left = append(left, item)
	}
	return Marshal(left)
}

// mapNumber maps a sequence; null, which is none, stays.
func mapNumber(value json.RawMessage, f func(uint64) uint64) (json.RawMessage, error) {
	if string(value) == "null" {
		return value, nil
	}
	var n uint64
	if err := json.Unmarshal(value, &n); err != nil {
		return nil, err
	}
	return strconv.AppendUint(nil, f(n), 10), nil
}

// rewriteObject replaces the values of a JSON object's members. If all stay,
// so do its bytes, else white space between members goes.
func rewriteObject(raw []byte, member func(name string, value json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var out bytes.Buffer
	changed := false
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		next, err := member(name, value)
		if err != nil {
			return err
		}
		changed = changed || !bytes.Equal(next, value)
		key, err := Marshal(name)
		if err != nil {
			return err
		}
		if out.Len() == 0 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(next)
		return nil
	})
	if err != nil || !changed {
		return raw, err
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
