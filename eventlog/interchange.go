package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog/fact"
)

// maxShown is how much of a payload that is no JSON its record's interchange
// form shows as text, in bytes.
const maxShown = 4 << 10

// recordJSON is the interchange form of a record: its envelope, and its
// payload under "data".
type recordJSON struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	Envelope
	Data json.RawMessage `json:"data"`
	// Base64 is the payload where Data can't be; then Data only shows it.
	Base64 *[]byte `json:"base64,omitempty"`
}

// recordNames and originNames are the interchange form's members.
var (
	recordNames = []string{
		"sequence", "time", "kind", "type", "agent", "run", "call", "writer", "ordinal", "origin", "data", "base64",
	}
	originNames = []string{"sequence", "time"}
)

// MarshalJSON writes the record with its envelope in one line of valid UTF-8.
// The member "data" has the payload as it is. If that would not keep its
// bytes, because they are not JSON, contain white space between tokens or are not
// UTF-8, "base64" has them, and "data" shows as much as can be shown.
//
// [json.Marshal] escapes <, > and & in what MarshalJSON returns. To keep the
// bytes call it directly, or by an encoder with SetEscapeHTML(false).
func (r Record) MarshalJSON() ([]byte, error) {
	j := recordJSON{Sequence: r.Sequence, Time: r.Time, Envelope: r.Envelope, Data: r.Payload}
	var plain bytes.Buffer
	switch {
	case !utf8.Valid(r.Payload) || json.Compact(&plain, r.Payload) != nil:
		j.Data, _ = json.Marshal(string(r.Payload[:min(len(r.Payload), maxShown)]))
		j.Base64 = &r.Payload
	case !bytes.Equal(plain.Bytes(), r.Payload):
		j.Data, j.Base64 = plain.Bytes(), &r.Payload
	}
	if j.Base64 != nil && *j.Base64 == nil {
		j.Base64 = &[]byte{}
	}
	return Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote, the payload byte for byte. It is
// tolerant; see [ParseRecord].
func (r *Record) UnmarshalJSON(b []byte) error {
	var j recordJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Record{Sequence: j.Sequence, Time: j.Time, Entry: Entry{Envelope: j.Envelope, Payload: j.Data}}
	if j.Base64 != nil {
		r.Payload = *j.Base64
	}
	return nil
}

// ParseRecord reads the interchange form of a record strictly, for [Import]:
// an object of the members that MarshalJSON writes, by their exact names and
// each once, whose envelope a log can hold. Of the payload it checks only
// that its type, if it has one, is the envelope's: a log outlives the versions of its
// readers. A message that helixd did not write is a record whose kind,
// type and agent are empty. The error is a [*ValidationError] that names the member.
func ParseRecord(line []byte) (Record, error) {
	if !utf8.Valid(line) {
		return Record{}, &ValidationError{Reason: "is not valid UTF-8"}
	}
	given, err := knownMembers(line, recordNames)
	if err != nil {
		return Record{}, err
	}
	for _, name := range []string{"sequence", "time", "kind", "type", "agent", "data"} {
		if given[name] == nil {
			return Record{}, &ValidationError{Field: name, Reason: "is required"}
		}
	}
	if origin := given["origin"]; origin != nil {
		if _, err := knownMembers(origin, originNames); err != nil {
			err.Field = join("origin", err.Field)
			return Record{}, err
		}
	}
	var r Record
	if err := r.UnmarshalJSON(line); err != nil {
		return Record{}, &ValidationError{Reason: err.Error()}
	}
	return r, validateRecord(r)
}

// knownMembers returns an object's members, if it has only those of the given
// names, and none twice: encoding/json would take other spellings for them.
func knownMembers(raw []byte, names []string) (map[string]json.RawMessage, *ValidationError) {
	members := map[string]json.RawMessage{}
	var problem *ValidationError
	err := eachMember(raw, func(name string, value json.RawMessage) error {
		switch {
		case !slices.Contains(names, name):
			problem = &ValidationError{Field: name, Reason: "is not a member of a record"}
		case members[name] != nil:
			problem = &ValidationError{Field: name, Reason: "is given twice"}
		default:
			members[name] = value
			return nil
		}
		return problem
	})
	if err != nil && problem == nil {
		problem = &ValidationError{Reason: "is not a JSON object"}
	}
	return members, problem
}

// eachMember calls f for the members of a JSON object, which is all of raw,
// until f returns an error. Values have the bytes that raw has.
func eachMember(raw []byte, f func(name string, value json.RawMessage) error) error {
	if !isObject(raw) {
		return errors.New("eventlog: not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token() // the brace
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if err == nil {
			err = f(name.(string), value)
		}
	}
	return err
}

func join(path, name string) string {
	if name == "" {
		return path
	}
	return path + "." + name
}

// maxWriter is the longest id of a writer, in bytes: that of an append with an
// idempotency key (see KeyedWriter).
const maxWriter = len(keyedPrefix) + 2*MaxID + 1

// validateRecord refuses what no log of helixd holds.
func validateRecord(r Record) error {
	k := &checker{}
	if r.Sequence == 0 {
		k.fail("sequence", "must not be 0")
	}
	if r.Time.IsZero() {
		k.fail("time", "must be set")
	}
	k.year("time", r.Time)
	if !isForeign(r.Envelope) {
		oneOf(k, "kind", r.Kind, KindChunk, KindFact)
		k.id("type", r.Type)
		if reason := idProblem(r.Agent, MaxSessionID); reason != "" {
			k.fail("agent", reason)
		}
	}
	for _, id := range []struct {
		name, value string
		limit       int
	}{{"run", r.Run, MaxID}, {"call", r.Call, MaxID}, {"writer", r.Writer, maxWriter}} {
		if reason := idProblem(id.value, id.limit); id.value != "" && reason != "" {
			k.fail(id.name, reason)
		}
	}
	if o := r.Origin; o != (Origin{}) {
		if o.Sequence == 0 || o.Time.IsZero() {
			k.fail("origin", "must have a sequence and a time")
		}
		k.year("origin.time", o.Time)
	}
	if r.Type == (*fact.Erased)(nil).Type() {
		k.fail("type", "is of an erased session")
	}
	if len(r.Payload) > MaxPayload {
		k.fail("data", fmt.Sprintf("must be at most %d bytes, not %d", MaxPayload, len(r.Payload)))
	}
	if json.Valid(r.Payload) {
		if err := checkDepth(r.Type, r.Payload); err != nil {
			k.fail("data", err.Error())
		} else if typ, err := discriminator(r.Payload); err == nil && typ != r.Type && !isForeign(r.Envelope) {
			k.fail("data", fmt.Sprintf("is of type %q, not of the record's", typ))
		}
	}
	return k.result()
}

// Times are kept in nanoseconds since 1970, as an int64, by clients too.
const minYear, maxYear = 1970, 2261

func (k *checker) year(name string, t time.Time) {
	if y := t.UTC().Year(); y < minYear || y > maxYear {
		k.fail(name, fmt.Sprintf("must be of a year from %d to %d", minYear, maxYear))
	}
}

// isForeign reports whether a record has no envelope: helixd did not write it.
// Folds park it.
func isForeign(e Envelope) bool { return e == Envelope{Origin: e.Origin} }
