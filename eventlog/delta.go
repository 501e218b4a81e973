package eventlog

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Deltas are most of what is written, so they have an encoder by hand. It writes
// what encoding/json does.

// appendDelta appends the JSON of a valid text delta, piece of reasoning or piece
// of arguments, and returns where in it the text is. It reports false for other chunks.
func appendDelta(b []byte, c Chunk) (out []byte, from, to int, ok bool) {
	complete := false
	switch c := c.(type) {
	case *TextDelta:
		b = appendDeltaHead(b, typeTextDelta, "")
		from = len(b)
		b = appendEscaped(b, c.Delta)
	case *Thinking:
		b = appendDeltaHead(b, typeThinking, "")
		from, complete = len(b), c.IsComplete
		b = appendEscaped(b, c.Content)
	case *ToolArgStreamDelta:
		b = appendDeltaHead(b, typeToolArgDelta, c.ToolCallID)
		from = len(b)
		b = appendEscaped(b, c.Delta)
	default:
		return b, 0, 0, false
	}
	to = len(b)
	base := c.base()
	b = appendDeltaAgent(b, c.Type(), complete, base.AgentID)
	b = appendEscaped(b, base.AgentType)
	return appendDeltaTail(b, base.Timestamp, int64(base.Step)), from, to, true
}

// Types of deltas.
var (
	typeTextDelta    = (*TextDelta)(nil).Type()
	typeThinking     = (*Thinking)(nil).Type()
	typeToolArgDelta = (*ToolArgStreamDelta)(nil).Type()
)

// A delta's JSON is its head, its text, its agent up to the agent's type, that type, and
// its tail.

func appendDeltaHead(b []byte, typ, toolCallID string) []byte {
	switch typ {
	case typeTextDelta:
		return append(b, `{"type":"text_delta","delta":"`...)
	case typeThinking:
		return append(b, `{"type":"thinking","content":"`...)
	}
	b = append(b, `{"type":"tool_arg_stream_delta","toolCallId":"`...)
	b = appendEscaped(b, toolCallID)
	return append(b, `","delta":"`...)
}

func appendDeltaAgent(b []byte, typ string, complete bool, agentID string) []byte {
	b = append(b, '"')
	if typ == typeThinking {
		b = append(b, `,"isComplete":`...)
		b = strconv.AppendBool(b, complete)
	}
	b = append(b, `,"agentId":"`...)
	b = appendEscaped(b, agentID)
	return append(b, `","agentType":"`...)
}

func appendDeltaTail(b []byte, timestamp, step int64) []byte {
	b = append(b, `","timestamp":`...)
	b = strconv.AppendInt(b, timestamp, 10)
	b = append(b, `,"step":`...)
	b = strconv.AppendInt(b, step, 10)
	return append(b, '}')
}

// ShortDelta returns what e's payload, the JSON of a delta, has in addition to e's envelope: the
// timestamp in base 36, a comma, the step, a quotation mark, the agent's type as in JSON, a
// quotation mark, and the text as in JSON. It reports false for an entry that [NewChunk] has
// not made, and of a delta that is not of the agent and the call in the envelope.
// [Entry.LongDelta] gives the same payload again.
func (e Entry) ShortDelta() (short []byte, ok bool) {
	v := e.value
	if !v.isOf(e) || v.to == 0 {
		return nil, false
	}
	c := v.delta()
	switch c := c.(type) {
	case *Thinking:
		if c.IsComplete {
			return nil, false
		}
	case *ToolArgStreamDelta:
		if c.ToolCallID != e.Call {
			return nil, false
		}
	}
	base := c.base()
	if base.AgentID != e.Agent || c.Type() != e.Type {
		return nil, false
	}
	short = make([]byte, 0, len(base.AgentType)+int(v.to-v.from)+24)
	short = strconv.AppendInt(short, base.Timestamp, 36)
	short = append(short, ',')
	short = strconv.AppendInt(short, int64(base.Step), 10)
	short = append(short, '"')
	short = appendEscaped(short, base.AgentType)
	short = append(short, '"')
	return append(short, v.quoted()...), true
}

// LongDelta returns e with the payload of which [Entry.ShortDelta] gave e's payload. It
// reports false if that is none.
func (e Entry) LongDelta() (Entry, bool) {
	first, rest, ok := bytes.Cut(e.Payload, []byte{'"'})
	if !ok {
		return e, false
	}
	end := 0 // of the agent's type
	for end < len(rest) && rest[end] != '"' {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	at, number, ok := bytes.Cut(first, []byte{','})
	timestamp, err := strconv.ParseInt(string(at), 36, 64)
	step, serr := strconv.ParseInt(string(number), 10, 64)
	if !ok || err != nil || serr != nil || end >= len(rest) {
		return e, false
	}
	b := make([]byte, 0, len(e.Payload)+len(e.Agent)+len(e.Call)+128)
	b = appendDeltaHead(b, e.Type, e.Call)
	b = append(b, rest[end+1:]...)
	b = appendDeltaAgent(b, e.Type, false, e.Agent)
	b = append(b, rest[:end]...)
	e.Payload = appendDeltaTail(b, timestamp, step)
	return e, true
}

// appendEscaped appends the inside of a JSON string, without HTML escapes.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	plain := 0 // from here on s is still to be appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || size > 1) {
				i += size
				continue
			}
			b = append(b, s[plain:i]...)
			if r == utf8.RuneError {
				b = append(b, `\ufffd`...)
			} else {
				b = append(b, `\u202`...)
				b = append(b, hex[r&0xf])
			}
		} else {
			b = append(b, s[plain:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, `\u00`...)
				b = append(b, hex[c>>4], hex[c&0xf])
			}
		}
		i += size
		plain = i
	}
	return append(b, s[plain:]...)
}

// deltaText returns where a delta has its text; nil: c is none.
func deltaText(c Chunk) *string {
	switch c := c.(type) {
	case *TextDelta:
		return &c.Delta
	case *Thinking:
		return &c.Content
	case *ToolArgStreamDelta:
		return &c.Delta
	}
	return nil
}

// deltaValue is the value of a delta, in one piece of memory.
type deltaValue[C any] struct {
	value
	chunk C
}

// valueOfDelta returns the value of a payload that appendDelta has written: a
// copy of c with the given text.
func valueOfDelta(c Chunk, text string, payload []byte, from, to int) *value {
	switch c := c.(type) {
	case *TextDelta:
		return newDeltaValue(*c, text, payload, from, to)
	case *Thinking:
		return newDeltaValue(*c, text, payload, from, to)
	case *ToolArgStreamDelta:
		return newDeltaValue(*c, text, payload, from, to)
	}
	return nil
}

func newDeltaValue[C any, P interface {
	*C
	Chunk
}](c C, text string, payload []byte, from, to int) *value {
	v := &deltaValue[C]{value: value{payload: payload, from: int32(from), to: int32(to)}, chunk: c}
	*deltaText(P(&v.chunk)) = text
	v.known.Store(P(&v.chunk))
	return &v.value
}

// delta returns the chunk that v was made with.
func (v *value) delta() Chunk { return v.known.Load().(Chunk) }

// quoted is a delta's text as it is in its payload.
func (v *value) quoted() []byte { return v.payload[v.from:v.to] }

// asDecoded returns s as it is after encoding and decoding: they replace each
// byte that is not UTF-8.
func asDecoded(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
