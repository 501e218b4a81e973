package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// object reads the members of a JSON object, by their exact names, and keeps
// the first problem. Members that nobody asks for are ignored, so that
// clients of later versions can send more.
type object struct {
	path    string // before a member's name, such as "message[0]."
	members map[string]json.RawMessage
	err     *error // shared with nested objects
}

func (o *object) fail(name, reason string) {
	if *o.err == nil {
		*o.err = invalid(o.path+name, reason)
	}
}

func (o *object) has(name string) bool { return o.members[name] != nil }

// text returns a required string; see also optText.
func (o *object) text(name string) string {
	if !o.has(name) {
		o.fail(name, "is required")
		return ""
	}
	return o.optText(name)
}

func (o *object) optText(name string) string {
	var s *string
	raw := o.members[name]
	if raw == nil {
		return ""
	}
	if json.Unmarshal(raw, &s) != nil || s == nil {
		o.fail(name, "must be a string")
		return ""
	}
	return *s
}

// word returns a required string that is not empty.
func (o *object) word(name string) string {
	s := o.text(name)
	if s == "" {
		o.fail(name, "must not be empty")
	}
	return s
}

// flag returns a required truth value.
func (o *object) flag(name string) bool {
	var b *bool
	if json.Unmarshal(o.orNull(name), &b) != nil || b == nil {
		o.fail(name, "must be true or false")
		return false
	}
	return *b
}

// number returns a required whole number within [least, most].
func (o *object) number(name string, least, most uint64) uint64 {
	var n *uint64
	if json.Unmarshal(o.orNull(name), &n) != nil || n == nil || *n < least || *n > most {
		o.fail(name, fmt.Sprintf("must be a whole number between %d and %d", least, most))
		return 0
	}
	return *n
}

func (o *object) orNull(name string) json.RawMessage {
	if raw := o.members[name]; raw != nil {
		return raw
	}
	return json.RawMessage("null")
}

// optObject returns an object as it is, or nil.
func (o *object) optObject(name string) json.RawMessage {
	raw := o.members[name]
	if raw != nil && raw[0] != '{' {
		o.fail(name, "must be an object")
		return nil
	}
	return raw
}

// object returns an object's members, or nil if there is none.
func (o *object) object(name string) *object {
	if o == nil {
		return nil
	}
	raw := o.optObject(name)
	if raw == nil {
		return nil
	}
	inner := &object{path: o.path + name + ".", err: o.err}
	_ = json.Unmarshal(raw, &inner.members)
	return inner
}

// optTexts returns an object of strings, or nil.
func (o *object) optTexts(name string) map[string]string {
	inner := o.object(name)
	if inner == nil {
		return nil
	}
	texts := make(map[string]string, len(inner.members))
	for key := range inner.members {
		texts[key] = inner.text(key)
	}
	return texts
}

// maxItems is how many objects are taken from one array.
const maxItems = 20_000

// objects returns the objects that an optional array holds.
func (o *object) objects(name string) (all []*object) {
	o.each(name, func(i int, item *object) {
		if len(all) == maxItems {
			o.fail(name, fmt.Sprintf("must hold at most %d objects", maxItems))
			return
		}
		all = append(all, item)
	})
	return all
}

// each calls f with the objects of an optional array, one by one, until there is
// a problem.
func (o *object) each(name string, f func(i int, item *object)) {
	raw := o.members[name]
	if raw == nil {
		return
	}
	if raw[0] != '[' {
		o.fail(name, "must be an array")
		return
	}
	i := 0
	for raw, err := range elementsOf(bytes.NewReader(raw)) {
		item := &object{path: fmt.Sprintf("%s%s[%d].", o.path, name, i), err: o.err}
		if err != nil || json.Unmarshal(raw, &item.members) != nil || item.members == nil {
			o.fail(fmt.Sprintf("%s[%d]", name, i), "must be an object")
		}
		if *o.err != nil {
			return
		}
		f(i, item)
		i++
	}
}

func (o *object) sessionID() string {
	id := o.text("sessionId")
	if err := eventlog.ValidateClientSessionID(id); err != nil && *o.err == nil {
		*o.err = err
	}
	return id
}

// duration returns an optional duration that is not negative.
func (o *object) duration(name string) (given bool, d time.Duration) {
	if _, given = o.members[name]; !given {
		return false, 0
	}
	d, err := time.ParseDuration(o.word(name))
	if err != nil || d < 0 {
		o.fail(name, `must be a duration such as "72h"`)
	}
	return true, d
}

// loose returns a string, "" if it is none: for what is no more than compared.
func (o *object) loose(name string) string {
	var s string
	if json.Unmarshal(o.members[name], &s) != nil {
		return ""
	}
	return s
}

// alone returns the object with problems of its own.
func (o *object) alone() *object {
	return &object{path: o.path, members: o.members, err: new(error)}
}

// nested returns a required object.
func (o *object) nested(name string) *object {
	inner := &object{path: o.path + name + ".", err: o.err}
	if raw := o.optObject(name); raw != nil {
		_ = json.Unmarshal(raw, &inner.members)
	} else {
		o.fail(name, "is required")
	}
	return inner
}
