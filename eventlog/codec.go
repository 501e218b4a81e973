package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/helixd/helixd/eventlog/fact"
)

// factTypes has every type of fact.
var factTypes = table[fact.Fact](
	new(fact.SessionCreated), new(fact.UserMessage), new(fact.RunRequested), new(fact.RunClaimed),
	new(fact.ClaimSettled), new(fact.ModelTurn), new(fact.ModelFailed), new(fact.ToolResult), new(fact.RunEnded),
	new(Truncated), new(fact.StreamPaused), new(fact.StreamResumed), new(fact.StreamEnd), new(fact.StreamFailed),
	new(fact.SessionImported), new(fact.Erased), new(fact.CallSuspended), new(fact.ResultSubmitted),
	new(fact.InterruptRequested), new(fact.SessionForked), new(fact.UsageRecorded), new(fact.RemoteProgress),
	new(fact.MemorySaved), new(fact.MemoryEmbedded), new(fact.MemoryForgotten), new(fact.MemoryRecalled),
	new(fact.WorkspaceOpened), new(fact.WorkspaceFailed), new(fact.WorkspaceSaved), new(fact.WorkspaceRestored),
	new(fact.WorkspaceClosed), new(fact.MessageAdded), new(fact.MetadataReplaced), new(fact.RunDeleted),
	new(fact.DurableCreated), new(fact.DurableAppended), new(fact.DurableChanged),
)

// table has a function for each type that makes a new value, by the type's name.
func table[T interface{ Type() string }](types ...T) map[string]func() T {
	m := make(map[string]func() T, len(types))
	for _, t := range types {
		of := reflect.TypeOf(t).Elem()
		m[t.Type()] = func() T { return reflect.New(of).Interface().(T) }
	}
	return m
}

// ChunkTypes returns the chunk types that this version knows, sorted.
func ChunkTypes() []string { return slices.Sorted(maps.Keys(chunkTypes)) }

// FactTypes returns the fact types that this version knows, sorted.
func FactTypes() []string { return slices.Sorted(maps.Keys(factTypes)) }

// EncodeChunk validates c and returns its JSON. The error is a [*ValidationError] that names the field.
func EncodeChunk(c Chunk) ([]byte, error) {
	payload, _, _, err := encodeChunk(c)
	return payload, err
}

// encodeChunk is EncodeChunk, and returns where in the payload the text of a delta is.
func encodeChunk(c Chunk) (payload []byte, from, to int, err error) {
	if u, ok := c.(*Unknown); ok {
		payload, err = encodeUnknown(u.Kind, u.Raw)
		return payload, 0, 0, err
	}
	if err := validateChunk(c); err != nil {
		return nil, 0, 0, err
	}
	var buf [512]byte
	if b, from, to, ok := appendDelta(buf[:0], c); ok {
		return slices.Clone(b), from, to, nil
	}
	payload, err = encode(c.Type(), c)
	return payload, 0, 0, err
}

// EncodeFact validates f and returns its JSON.
func EncodeFact(f fact.Fact) ([]byte, error) {
	if u, ok := f.(*fact.Unknown); ok {
		return encodeUnknown(u.Kind, u.Raw)
	}
	if err := validateFact(f); err != nil {
		return nil, err
	}
	return encode(f.Type(), f)
}

// encodeUnknown returns the bytes as they came, if they are of that kind.
func encodeUnknown(kind string, raw []byte) ([]byte, error) {
	if typ, err := discriminator(raw); err != nil || typ != kind {
		return nil, &ValidationError{Type: kind, Reason: "must hold the JSON of its kind"}
	}
	return bytes.Clone(raw), checkDepth(kind, raw)
}

// encode puts the discriminator in front of v's own fields. Text stays as it
// is: no HTML escapes.
func encode(typ string, v any) ([]byte, error) {
	raw, err := appendPlain(`{"type":"`+typ+`",`, v)
	if err != nil {
		return nil, &ValidationError{Type: typ, Reason: err.Error()}
	}
	return raw, checkDepth(typ, raw)
}

// Marshal is json.Marshal without HTML escapes: text is stored and shown as it is.
func Marshal(v any) ([]byte, error) { return appendPlain("", v) }

// plainEncoder is an encoder without HTML escapes and what it writes to.
type plainEncoder struct {
	buf bytes.Buffer
	enc *json.Encoder
}

var plainEncoders = sync.Pool{New: func() any {
	p := new(plainEncoder)
	p.enc = json.NewEncoder(&p.buf)
	p.enc.SetEscapeHTML(false)
	return p
}}

// maxPooledBytes bounds the memory of an encoder that is kept.
const maxPooledBytes = 64 << 10

// appendPlain is Marshal with something else in place of an object's brace.
func appendPlain(front string, v any) ([]byte, error) {
	p := plainEncoders.Get().(*plainEncoder)
	p.buf.Reset()
	if err := p.enc.Encode(v); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(p.buf.Bytes(), []byte("\n"))
	if p.buf.Cap() > maxPooledBytes && front == "" {
		return body, nil // its encoder is not used again
	}
	if front != "" {
		body = body[1:]
	}
	raw := append(append(make([]byte, 0, len(front)+len(body)), front...), body...)
	if p.buf.Cap() <= maxPooledBytes {
		plainEncoders.Put(p)
	}
	return raw, nil
}

// DecodeChunk decodes a stored chunk tolerantly: it ignores unknown fields, and an
// unknown type becomes [*Unknown]. It returns an error if the bytes are not a chunk at all.
func DecodeChunk(raw []byte) (Chunk, error) {
	typ, row, err := rowOf(raw, chunkTypes)
	if err != nil {
		return nil, err
	}
	if row == nil {
		u := &Unknown{Kind: typ, Raw: bytes.Clone(raw)}
		_ = json.Unmarshal(raw, &u.Base) // as much of it as fits
		return u, nil
	}
	c := row()
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, undecoded(raw, typ, err)
	}
	return c, nil
}

// DecodeFact reads a stored fact, as tolerantly as [DecodeChunk].
func DecodeFact(raw []byte) (fact.Fact, error) {
	typ, row, err := rowOf(raw, factTypes)
	if err != nil {
		return nil, err
	}
	if row == nil {
		u := &fact.Unknown{Kind: typ, Raw: bytes.Clone(raw)}
		_ = json.Unmarshal(raw, &u.Base)
		return u, nil
	}
	f := row()
	if err := json.Unmarshal(raw, f); err != nil {
		return nil, undecoded(raw, typ, err)
	}
	return f, nil
}

// rowOf returns a payload's type and its row, nil if the table has none.
func rowOf[T any](raw []byte, types map[string]func() T) (typ string, row func() T, err error) {
	if name, ok := leadingType(raw); ok {
		if row := types[string(name)]; row != nil {
			return string(name), row, nil
		}
	}
	typ, err = discriminator(raw)
	return typ, types[typ], err
}

// leadingType returns the type of a payload that begins with it, as encode writes
// it. It is sure that no other member could be it: to look through the bytes takes
// a fraction of parsing them once more.
func leadingType(raw []byte) (name []byte, ok bool) {
	rest, ok := bytes.CutPrefix(raw, []byte(`{"type":"`))
	if !ok {
		return nil, false
	}
	name, rest, ok = bytes.Cut(rest, []byte{'"'})
	if !ok || bytes.Contains(raw, []byte(`\u`)) { // letters can be escaped
		return nil, false
	}
	member := []byte(`type"`)
	for {
		_, rest, ok = bytes.Cut(rest, []byte{'"'})
		if !ok {
			return name, true
		}
		if len(rest) >= len(member) && bytes.EqualFold(rest[:len(member)], member) {
			return nil, false
		}
	}
}

// undecoded says why a payload can't be read: states keep it, so it does not
// depend on how its type was found.
func undecoded(raw []byte, typ string, err error) error {
	if _, derr := discriminator(raw); derr != nil {
		return derr
	}
	return fmt.Errorf("eventlog: decode %s: %w", typ, err)
}

func discriminator(raw []byte) (string, error) {
	var d struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return "", fmt.Errorf("eventlog: decode record: %w", err)
	}
	if d.Type == "" {
		return "", fmt.Errorf("eventlog: decode record: no type")
	}
	return d.Type, nil
}
