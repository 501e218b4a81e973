package config

import (
	"bytes"
	"encoding/json"
)

// json returns the node as JSON. Numbers keep their digits, mappings their
// order.
func (n *node) json() json.RawMessage {
	var b bytes.Buffer
	n.writeJSON(&b)
	return b.Bytes()
}

func (n *node) writeJSON(b *bytes.Buffer) {
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool, kindNumber:
		b.WriteString(n.text)
	case kindString:
		writeString(b, n.text)
	case kindMapping:
		b.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, p.key)
			b.WriteByte(':')
			p.value.writeJSON(b)
		}
		b.WriteByte('}')
	case kindSequence:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	}
}

func writeString(b *bytes.Buffer, s string) {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always marshal
	}
	b.Write(data)
}
