package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Object reads the members of a JSON object by their exact names, and keeps the first
// problem in Err. Unknown members are ignored, so that clients of later versions can send
// more.
type Object struct {
	path    string // before a member's name, such as "message[0]."
	Members map[string]json.RawMessage
	Err     *error // shared with nested objects
}

func (o *Object) Fail(name, reason string) {
	if *o.Err == nil {
		*o.Err = Invalid(o.path+name, reason)
	}
}

// DropNulls removes members that are null, which some clients send for what they leave out.
func (o *Object) DropNulls() {
	for name, raw := range o.Members {
		if string(raw) == "null" {
			delete(o.Members, name)
		}
	}
}

func (o *Object) Has(name string) bool { return o.Members[name] != nil }

// Text returns a required string; see also OptText.
func (o *Object) Text(name string) string {
	if !o.Has(name) {
		o.Fail(name, "is required")
		return ""
	}
	return o.OptText(name)
}

func (o *Object) OptText(name string) string {
	var s *string
	raw := o.Members[name]
	if raw == nil {
		return ""
	}
	if json.Unmarshal(raw, &s) != nil || s == nil {
		o.Fail(name, "must be a string")
		return ""
	}
	return *s
}

// Word returns a required string that is not empty.
func (o *Object) Word(name string) string {
	s := o.Text(name)
	if s == "" {
		o.Fail(name, "must not be empty")
	}
	return s
}

// OptWord is Word, or "" if it is absent.
func (o *Object) OptWord(name string) string {
	if !o.Has(name) {
		return ""
	}
	return o.Word(name)
}

// Flag returns a required truth value.
func (o *Object) Flag(name string) bool {
	var b *bool
	if json.Unmarshal(o.OrNull(name), &b) != nil || b == nil {
		o.Fail(name, "must be true or false")
		return false
	}
	return *b
}

// Number returns a required whole number within [least, most].
func (o *Object) Number(name string, least, most uint64) uint64 {
	var n *uint64
	if json.Unmarshal(o.OrNull(name), &n) != nil || n == nil || *n < least || *n > most {
		o.Fail(name, fmt.Sprintf("must be a whole number between %d and %d", least, most))
		return 0
	}
	return *n
}

func (o *Object) OrNull(name string) json.RawMessage {
	if raw := o.Members[name]; raw != nil {
		return raw
	}
	return json.RawMessage("null")
}

// OptObject returns the JSON of an optional object, or nil.
func (o *Object) OptObject(name string) json.RawMessage {
	raw := o.Members[name]
	if raw != nil && raw[0] != '{' {
		o.Fail(name, "must be an object")
		return nil
	}
	return raw
}

// Object returns an optional object, or nil.
func (o *Object) Object(name string) *Object {
	if o == nil {
		return nil
	}
	raw := o.OptObject(name)
	if raw == nil {
		return nil
	}
	inner := &Object{path: o.path + name + ".", Err: o.Err}
	_ = json.Unmarshal(raw, &inner.Members)
	return inner
}

// OptTexts returns an optional object whose members are strings, or nil.
func (o *Object) OptTexts(name string) map[string]string {
	inner := o.Object(name)
	if inner == nil {
		return nil
	}
	texts := make(map[string]string, len(inner.Members))
	for key := range inner.Members {
		texts[key] = inner.Text(key)
	}
	return texts
}

// maxItems is how many objects one array may hold.
const maxItems = 20_000

// Objects returns the objects that an optional array holds.
func (o *Object) Objects(name string) (all []*Object) {
	o.Each(name, func(i int, item *Object) {
		if len(all) == maxItems {
			o.Fail(name, fmt.Sprintf("must hold at most %d objects", maxItems))
			return
		}
		all = append(all, item)
	})
	return all
}

// Each calls f with each object of an optional array until there is a problem.
func (o *Object) Each(name string, f func(i int, item *Object)) {
	raw := o.Members[name]
	if raw == nil {
		return
	}
	if raw[0] != '[' {
		o.Fail(name, "must be an array")
		return
	}
	i := 0
	for raw, err := range ElementsOf(bytes.NewReader(raw)) {
		item := &Object{path: fmt.Sprintf("%s%s[%d].", o.path, name, i), Err: o.Err}
		if err != nil || json.Unmarshal(raw, &item.Members) != nil || item.Members == nil {
			o.Fail(fmt.Sprintf("%s[%d]", name, i), "must be an object")
		}
		if *o.Err != nil {
			return
		}
		f(i, item)
		i++
	}
}

func (o *Object) SessionID() string {
	id := o.Text("sessionId")
	if err := eventlog.ValidateClientSessionID(id); err != nil && *o.Err == nil {
		*o.Err = err
	}
	return id
}

// Duration returns an optional duration that is not negative.
func (o *Object) Duration(name string) (given bool, d time.Duration) {
	if _, given = o.Members[name]; !given {
		return false, 0
	}
	d, err := time.ParseDuration(o.Word(name))
	if err != nil || d < 0 {
		o.Fail(name, `must be a duration such as "72h"`)
	}
	return true, d
}

// Loose returns a string, or "" if the member is not one. It is for values that are only
// compared.
func (o *Object) Loose(name string) string {
	var s string
	if json.Unmarshal(o.Members[name], &s) != nil {
		return ""
	}
	return s
}

// Alone returns the object with its own Err.
func (o *Object) Alone() *Object {
	return &Object{path: o.path, Members: o.Members, Err: new(error)}
}

// Nested returns a required object.
func (o *Object) Nested(name string) *Object {
	if inner := o.Object(name); inner != nil {
		return inner
	}
	o.Fail(name, "is required")
	return &Object{Err: o.Err}
}
