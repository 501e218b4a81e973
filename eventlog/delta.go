package eventlog

import (
	"strconv"
	"unicode/utf8"
)

// Deltas are most of what is written, so they have an encoder by hand. It writes
// what encoding/json does.

// appendDelta appends the JSON of a valid text delta, piece of reasoning or piece
// of arguments, and tells where it has the text. It reports false of other chunks.
func appendDelta(b []byte, c Chunk) (out []byte, from, to int, ok bool) {
	switch c := c.(type) {
	case *TextDelta:
		b = append(b, `{"type":"text_delta","delta":"`...)
		from = len(b)
		b = appendEscaped(b, c.Delta)
	case *Thinking:
		b = append(b, `{"type":"thinking","content":"`...)
		from = len(b)
		b = appendEscaped(b, c.Content)
	case *ToolArgStreamDelta:
		b = append(b, `{"type":"tool_arg_stream_delta","toolCallId":"`...)
		b = appendEscaped(b, c.ToolCallID)
		b = append(b, `","delta":"`...)
		from = len(b)
		b = appendEscaped(b, c.Delta)
	default:
		return b, 0, 0, false
	}
	to = len(b)
	if c, ok := c.(*Thinking); ok {
		b = append(b, `","isComplete":`...)
		b = strconv.AppendBool(b, c.IsComplete)
		b = append(b, `,"agentId":"`...)
	} else {
		b = append(b, `","agentId":"`...)
	}
	base := c.base()
	b = appendEscaped(b, base.AgentID)
	b = append(b, `","agentType":"`...)
	b = appendEscaped(b, base.AgentType)
	b = append(b, `","timestamp":`...)
	b = strconv.AppendInt(b, base.Timestamp, 10)
	b = append(b, `,"step":`...)
	b = strconv.AppendInt(b, int64(base.Step), 10)
	return append(b, '}'), from, to, true
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
