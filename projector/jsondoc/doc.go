// Package jsondoc holds a JSON document that is patched often.
//
// A [Doc] never changes. A patch returns another one, which shares with it
// the parts that the patch did not touch. An array or object of more than 4 KiB is a
// list of runs: pieces of its JSON text of about 3 KiB, or one element that is
// itself large. An operation copies the runs that it changes and the lists of
// runs on its path, so that it costs about the same in a small document and in
// one of 16 MiB.
//
// Work is counted in bytes, from the operations and the lengths of the values
// that they pass, never from how a document is held: every node counts the same.
//
// The results are those of RFC 6902. The text stays as it was written, except
// that the keys of an object that an operation passes are written in one way,
// and that of several members with the same key the last value stays. Negative
// indexes are refused. An empty reference token names the member "" as the last
// token of a path, and the whole document as it was before the patch where
// a value is read.
package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	// MaxSize is the largest document that a patch may make, in bytes, and the
	// most that the copy operations of one patch may add.
	MaxSize = 16 << 20
	// MaxDepth is how deeply the arrays and objects of a document may be nested
	// after a patch.
	MaxDepth = 5000
)

// ErrTooMuchWork says that a patch needs more work than it may do.
var ErrTooMuchWork = errors.New("too much work")

// Doc is a JSON document. The zero value is null.
type Doc struct{ root *node }

// New returns the document with the given text, which must not change any
// more. The first patch checks that it is JSON.
func New(text []byte) Doc {
	if len(text) == 0 {
		return Doc{}
	}
	return Doc{&node{raw: text}}
}

// Len is the length of the text in bytes.
func (d Doc) Len() int {
	if d.root == nil {
		return 0
	}
	return d.root.len()
}

// IsZero reports whether there is no document.
func (d Doc) IsZero() bool { return d.root == nil }

// IsObject reports whether the document is an object.
func (d Doc) IsObject() bool {
	if d.root == nil {
		return false
	}
	if d.root.raw == nil {
		return d.root.object
	}
	text := bytes.TrimLeft(d.root.raw, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// Bytes returns the text, nil if there is no document. It is read only.
func (d Doc) Bytes() json.RawMessage {
	switch {
	case d.root == nil:
		return nil
	case d.root.raw != nil:
		return d.root.raw
	}
	return d.root.appendTo(make([]byte, 0, d.root.len()))
}

// String returns the text.
func (d Doc) String() string { return string(d.Bytes()) }

// MarshalJSON returns the text.
func (d Doc) MarshalJSON() ([]byte, error) {
	if d.root == nil {
		return []byte("null"), nil
	}
	return d.Bytes(), nil
}

// UnmarshalJSON takes a text over.
func (d *Doc) UnmarshalJSON(text []byte) error {
	*d = New(bytes.Clone(text))
	return nil
}

// AppendBinary appends the text.
func (d Doc) AppendBinary(b []byte) ([]byte, error) {
	if d.root == nil {
		return b, nil
	}
	return d.root.appendTo(b), nil
}

// UnmarshalBinary takes a text over without copying it.
func (d *Doc) UnmarshalBinary(text []byte) error {
	*d = New(text)
	return nil
}

// load decodes a text from an untrusted source.
func (d Doc) load() (*node, error) {
	if d.root == nil {
		return nil, errors.New("there is no document")
	}
	if d.root.raw == nil {
		return d.root, nil
	}
	if known := d.root.memo.Load(); known != nil {
		return known, nil
	}
	var text bytes.Buffer
	text.Grow(len(d.root.raw))
	if err := json.Compact(&text, d.root.raw); err != nil {
		return nil, fmt.Errorf("the document is not JSON: %w", err)
	}
	root := parse(text.Bytes())
	if root.raw == nil {
		d.root.memo.Store(root)
	}
	return root, nil
}
