package eventlog

import (
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Kind distinguishes chunks from facts.
type Kind string

// The two kinds of records.
const (
	KindChunk Kind = "chunk"
	KindFact  Kind = "fact"
)

// Envelope is what a record says beside its payload. On NATS it is the
// message's headers.
type Envelope struct {
	Kind    Kind   `json:"kind"`
	Type    string `json:"type"`
	Agent   string `json:"agent"`             // session id within the tree
	Run     string `json:"run,omitempty"`     // run that wrote it
	Call    string `json:"call,omitempty"`    // tool call whose execution wrote it
	Writer  string `json:"writer,omitempty"`  // claim that wrote it; see Writer
	Ordinal uint64 `json:"ordinal,omitempty"` // position among the writer's records, from 1
	Origin  Origin `json:"origin,omitzero"`   // of an imported record; see Import
}

// Origin says where an imported record was first stored: its sequence in
// that log, and its time there. The zero Origin is of a record that is where
// it was written.
type Origin struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"` // UTC
}

// Entry is a record before it has a sequence.
type Entry struct {
	Envelope
	Payload []byte // its bytes never change

	value *value // what Payload decodes to; nil, or of another payload: it is decoded each time
}

// Record is one element of a session's log. Its payload is never changed.
type Record struct {
	Sequence uint64    // JetStream's sequence: unique, rising, with gaps
	Time     time.Time // about when the store took it; folds don't look at it
	Entry
}

// Labels place an entry in the run that writes it.
type Labels struct{ Run, Call string }

// NewChunk validates c and makes an entry of it. The caller may change c later: the
// entry has its own copy. The error is a [*ValidationError].
func NewChunk(c Chunk, l Labels) (Entry, error) {
	payload, from, to, err := encodeChunk(c)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{
		Envelope: Envelope{Kind: KindChunk, Type: c.Type(), Agent: c.base().AgentID, Run: l.Run, Call: l.Call},
		Payload:  payload,
	}
	if to > 0 {
		e.value = valueOfDelta(c, asDecoded(*deltaText(c)), payload, from, to)
		return e, nil
	}
	return e.DecodeOnce(), nil
}

// NewFact validates f and makes an entry of it, about the given session of
// the tree. The caller may change f later. The error is a [*ValidationError].
func NewFact(session string, f fact.Fact, l Labels) (Entry, error) {
	payload, err := EncodeFact(f)
	if err != nil {
		return Entry{}, err
	}
	return Entry{
		Envelope: Envelope{Kind: KindFact, Type: f.Type(), Agent: session, Run: l.Run, Call: l.Call},
		Payload:  payload,
	}.DecodeOnce(), nil
}

// Chunk returns the chunk that the record's payload decodes to. It must not be
// changed: copies of the record may share it.
func (e Entry) Chunk() (Chunk, error) {
	return contentOf(e, KindChunk, DecodeChunk)
}

// Fact returns the fact that the record's payload decodes to. It must not be
// changed: copies of the record may share it.
func (e Entry) Fact() (fact.Fact, error) {
	return contentOf(e, KindFact, DecodeFact)
}

// contentOf returns what the payload of a record of a kind decodes to.
func contentOf[T interface{ Type() string }](e Entry, kind Kind, decode func([]byte) (T, error)) (none T, err error) {
	if e.Kind != kind {
		return none, fmt.Errorf("eventlog: a %s %s is no %s", e.Kind, e.Type, kind)
	}
	got, err := decoded(e, decode)
	if err == nil && got.Type() != e.Type {
		return none, fmt.Errorf("eventlog: a record of type %s holds a %s", e.Type, got.Type())
	}
	return got, err
}
