// Package patch applies and computes changes of a custom state, as operations of
// RFC 6902.
package patch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/jsondoc"
)

// Diff returns the operations that change doc as before was changed to after.
// before is what a Go type could hold of doc: members that the type does not
// know, or adds with a zero value, are no change.
func Diff(doc, before, after json.RawMessage) ([]eventlog.PatchOp, error) {
	var values [3]any
	for i, raw := range []json.RawMessage{doc, before, after} {
		if err := DecodeExact(raw, &values[i]); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	next, err := eventlog.Marshal(overlay(values[0], values[1], values[2]))
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return jsondoc.Diff(context.Background(), doc, next)
}

// overlay carries the change from before to after over to doc.
func overlay(doc, before, after any) any {
	d, ok1 := doc.(map[string]any)
	b, ok2 := before.(map[string]any)
	a, ok3 := after.(map[string]any)
	if !ok1 || !ok2 || !ok3 {
		if reflect.DeepEqual(before, after) {
			return doc
		}
		return after
	}
	out := maps.Clone(d)
	for k, v := range a {
		old, had := b[k]
		if had && reflect.DeepEqual(old, v) {
			continue
		}
		out[k] = overlay(d[k], old, v)
	}
	for k := range b {
		if _, kept := a[k]; !kept {
			delete(out, k)
		}
	}
	return out
}

// DecodeExact decodes JSON, and keeps numbers as they are written.
func DecodeExact(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}
