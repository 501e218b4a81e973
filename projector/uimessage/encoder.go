package uimessage

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// EncoderOptions configure the stream of an assistant's message.
type EncoderOptions struct {
	Root      string // the session's id
	MessageID string // of the start part
	// StartMetadata and FinishMetadata are the messageMetadata of start and
	// finish; nil: none.
	StartMetadata, FinishMetadata json.RawMessage
	// Answered are the calls that waited for a person and have their answer
	// already: the client must not be asked again.
	Answered map[string]CallAnswer
	// Earlier are the calls of earlier messages: what comes of them belongs
	// there.
	Earlier map[string]bool
	// Loose adds fields that clients before 5.0.217, 6.0.231 and 7.0.32 refuse:
	// finish.messageId and abort.reason.
	Loose bool
	// Checkpoints also sends checkpoints and committed and discarded steps.
	Checkpoints bool
}

// Encoder turns the effective records of a session tree, in their order and
// from the first one of an assistant's message, into the UI message stream of
// that message (see docs/reference/protocol.md#chat-streams).
type Encoder struct {
	o      EncoderOptions
	frames []Frame         // of the record
	at     eventlog.Record // without its payload

	step   *eventlog.Record  // of the start-step that has no finish-step yet; nil: there is none
	asking bool              // the step is one that sub-agents' questions have to themselves
	block  *block            // the root's open text or reasoning
	blocks map[string]uint64 // the number of the next one, by kind
	calls  map[string]*call

	failed       bool // an error was sent to the client, which ignores the rest
	finishReason string
	interruption string // why the run was interrupted
}

// block is text or reasoning that has not ended.
type block struct {
	kind string // text or reasoning
	id   string
	open bool // false after Reopen: the client can't continue it
}

// call is a tool call of the message.
type call struct {
	name      string
	announced *eventlog.Record // with which its part began; nil: the message has none
	open      bool             // false after Reopen: the stream has not begun its part
	streamed  bool             // there were deltas of its input
	client    bool             // the client executes it
	asks      bool             // a sub-agent's that the user answers
	over      *eventlog.Record // that denied, failed or answered it: what follows says it again
	input     json.RawMessage
}

// NewEncoder returns an encoder at the beginning of a message.
func NewEncoder(o EncoderOptions) *Encoder {
	return &Encoder{o: o, blocks: map[string]uint64{}, calls: map[string]*call{}, finishReason: "stop"}
}

// Start returns the start part.
func (e *Encoder) Start() Frame {
	return e.encode(struct {
		Type      string          `json:"type"`
		MessageID string          `json:"messageId"`
		Metadata  json.RawMessage `json:"messageMetadata,omitempty"`
	}{"start", e.o.MessageID, e.o.StartMetadata})
}

// Encode returns the parts of a record.
func (e *Encoder) Encode(r eventlog.Record) []Frame {
	e.frames, e.at = nil, eventlog.Record{Sequence: r.Sequence, Entry: eventlog.Entry{Envelope: r.Envelope}}
	switch r.Kind {
	case eventlog.KindChunk:
		if c, err := r.Chunk(); err == nil {
			e.chunk(r, c)
		}
	case eventlog.KindFact:
		if f, err := r.Fact(); err == nil {
			e.fact(r, f)
		}
	}
	return e.frames
}

// Reopen begins open parts again before they continue. It is for a client that
// shows the message so far from a snapshot: no client can continue the parts in
// it.
func (e *Encoder) Reopen() {
	if e.block != nil {
		e.block.open = false
	}
	for _, c := range e.calls {
		c.open = false
	}
}

// End returns the parts with which the stream ends.
func (e *Encoder) End(end Ending) []Frame {
	e.frames = nil
	e.closeStep()
	switch end.Outcome {
	case Interrupted, Aborted:
		abort := map[string]string{"type": "abort"}
		if e.o.Loose && e.interruption != "" {
			abort["reason"] = e.interruption
		}
		e.emit(abort)
	case Failed:
		e.fail(end.Error)
		e.finish("error")
	case Waiting:
		e.finish("tool-calls")
	default:
		e.finish(e.finishReason)
	}
	return e.frames
}

func (e *Encoder) emit(part any) { e.frames = append(e.frames, e.encode(part)) }

// encode leaves out what would end the stream of some AI SDK clients with an error.
func (e *Encoder) encode(part any) Frame { return Harmless(encode(part)) }

func (e *Encoder) finish(reason string) {
	part := struct {
		Type      string          `json:"type"`
		Reason    string          `json:"finishReason"`
		Metadata  json.RawMessage `json:"messageMetadata,omitempty"`
		MessageID string          `json:"messageId,omitempty"`
	}{Type: "finish", Reason: reason, Metadata: e.o.FinishMetadata}
	if e.o.Loose {
		part.MessageID = e.o.MessageID
	}
	e.emit(part)
}

func (e *Encoder) fail(text string) {
	if !e.failed {
		e.failed = true
		e.emit(struct {
			Type string `json:"type"`
			Text string `json:"errorText"`
		}{"error", text})
	}
}

// delta continues the block of a kind, or begins one.
func (e *Encoder) delta(kind, text string) {
	if e.block != nil && e.block.kind != kind {
		e.closeBlock()
	}
	if e.block == nil {
		e.block = &block{kind: kind, id: fmt.Sprintf("%s-%d", kind, e.blocks[kind])}
		e.blocks[kind]++
	}
	if !e.block.open {
		e.emit(partOf{Type: kind + "-start", ID: e.block.id})
		e.block.open = true
	}
	e.emit(deltaOf{Type: kind + "-delta", ID: e.block.id, Delta: text})
}

type (
	partOf struct {
		Type string `json:"type"`
		ID   string `json:"id,omitempty"`
	}
	deltaOf struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Delta string `json:"delta"`
	}
)

// closeBlock ends the open block. After Reopen it ends only a block that has
// begun again.
func (e *Encoder) closeBlock() {
	if e.block != nil && e.block.open {
		e.emit(partOf{Type: e.block.kind + "-end", ID: e.block.id})
	}
	e.block = nil
}

func (e *Encoder) startStep() {
	e.closeStep()
	e.emit(partOf{Type: "start-step"})
	e.step = new(e.at)
}

func (e *Encoder) closeStep() {
	e.closeBlock()
	if e.step != nil {
		e.emit(partOf{Type: "finish-step"})
		e.step = nil
	}
}
