package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/helixd/helixd/eventlog"
)

// Space is JSON's white space.
const Space = " \t\r\n"

// ElementsOf yields the elements of a JSON array one by one, so that a client that sends
// too many does not make the server hold them all.
func ElementsOf(array io.Reader) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		d := json.NewDecoder(array)
		_, err := d.Token()
		for err == nil && d.More() {
			var item json.RawMessage
			if err = d.Decode(&item); err == nil && !yield(item, nil) {
				return
			}
		}
		if err == nil {
			_, err = d.Token()
		}
		if _, rest := d.Token(); err != nil || !errors.Is(rest, io.EOF) {
			yield(nil, &eventlog.ValidationError{Reason: "the body is not a JSON array"})
		}
	}
}

// JSONOf returns a text that is JSON as it is, and any other as a JSON string.
func JSONOf(text string) json.RawMessage {
	if raw := []byte(text); json.Valid(raw) && eventlog.Depth(raw) < eventlog.MaxDepth/2 {
		return raw
	}
	raw, _ := eventlog.Marshal(text)
	return raw
}

// TextOf returns the outcome of a call, its result or why it failed, as a text: a JSON string as
// it is.
func TextOf(result json.RawMessage, failure string) string {
	var text string
	switch {
	case failure != "":
		return failure
	case json.Unmarshal(result, &text) == nil:
		return text
	}
	return string(result)
}

// Compacted returns JSON without white space between tokens, or nil.
func Compacted(raw json.RawMessage) (json.RawMessage, error) {
	if raw == nil {
		return nil, nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, &eventlog.ValidationError{Reason: "the body is not valid JSON"}
	}
	return out.Bytes(), nil
}
