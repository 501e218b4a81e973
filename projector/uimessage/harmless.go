package uimessage

import (
	"bytes"
	"encoding/json"
)

// Harmless leaves out the members of objects by which a client takes a frame
// for an attack, and drops the stream: __proto__, and a constructor that has a
// prototype. Few frames have them; those lose the order of their members.
func Harmless(frame []byte) []byte {
	if !bytes.Contains(frame, []byte("proto")) && !bytes.Contains(frame, []byte(`\u00`)) {
		return frame
	}
	d := json.NewDecoder(bytes.NewReader(frame))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || !disarm(v) {
		return frame
	}
	return encode(v)
}

// disarm reports whether it had to leave something out.
func disarm(v any) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["__proto__"]; ok {
			delete(v, "__proto__")
			changed = true
		}
		if c, ok := v["constructor"].(map[string]any); ok {
			if _, ok := c["prototype"]; ok {
				delete(v, "constructor")
				changed = true
			}
		}
		for _, inner := range v {
			changed = disarm(inner) || changed
		}
	case []any:
		for _, inner := range v {
			changed = disarm(inner) || changed
		}
	}
	return changed
}
