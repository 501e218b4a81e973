package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// Query reads the parameters of a URL strictly, and keeps the first problem in Err. The
// routing table refuses unknown parameters.
type Query struct {
	Values url.Values
	Err    *error
}

// Fail keeps a problem unless there is one.
func (q Query) Fail(problem error) {
	if *q.Err == nil {
		*q.Err = problem
	}
}

func (q Query) invalid(name, reason string) { q.Fail(Invalid(name, reason)) }

// The parameters that may be given several times, beside those whose names end in [].
const (
	ParamType     = "type"     // its values are alternatives
	paramMetadata = "metadata" // all of its values count
)

// maxMetadata is how many entries of metadata a listing can be filtered by.
const maxMetadata = 16

// ParseQuery returns an error if a query is ambiguous. It returns what it could read even
// then.
func ParseQuery(raw string) (Query, error) {
	values, err := url.ParseQuery(raw)
	q := Query{values, new(error)}
	if err != nil {
		return q, &eventlog.ValidationError{Reason: "the query string is malformed"}
	}
	for name, v := range values {
		switch {
		case !utf8.ValidString(name):
			return q, &eventlog.ValidationError{Reason: "the query string is not valid UTF-8"}
		case len(v) > 1 && name != ParamType && name != paramMetadata && !strings.HasSuffix(name, "[]"):
			return q, Invalid(name, "is given twice")
		case !utf8.ValidString(strings.Join(v, "")):
			return q, Invalid(name, "must be valid UTF-8")
		}
	}
	return q, nil
}

// Number returns an unsigned decimal number and whether it is given.
func (q Query) Number(name string) (n uint64, given bool) {
	if !q.Values.Has(name) {
		return 0, false
	}
	n, err := ParseNumber(name, q.Values.Get(name))
	q.Fail(err)
	return n, true
}

// Integer returns a number within [least, most], or byDefault.
func (q Query) Integer(name string, byDefault, least, most int) int {
	n, given := q.Number(name)
	if !given {
		return byDefault
	}
	if n < uint64(least) || n > uint64(most) {
		q.invalid(name, fmt.Sprintf("must be between %d and %d", least, most))
	}
	return int(n)
}

// Page returns which part of a listing is asked for.
func (q Query) Page() readmodel.Paging {
	return readmodel.Paging{Offset: q.Integer("offset", 0, 0, math.MaxInt32), Limit: q.Integer("limit", api.DefaultPage, 1, api.MaxPage)}
}

// maxWord is the longest parameter that a listing is filtered by, in bytes.
const maxWord = 1 << 10

// Word returns a text, or "" if it is absent. An empty value is an error: a client whose
// filter is empty by mistake must not get everything.
func (q Query) Word(name string) string {
	v := q.Values.Get(name)
	q.checkWord(name, v, q.Values.Has(name))
	return v
}

func (q Query) checkWord(name, v string, given bool) {
	switch {
	case v == "" && given:
		q.invalid(name, "must not be empty")
	case len(v) > maxWord:
		q.invalid(name, fmt.Sprintf("must have at most %d bytes", maxWord))
	}
}

// Words returns the texts of a parameter that may be repeated, at most so many,
// or nil if it is absent.
func (q Query) Words(name string, most int) []string {
	all := q.Values[name]
	if len(all) > most {
		q.invalid(name, fmt.Sprintf("must be given at most %d times", most))
	}
	for _, v := range all {
		q.checkWord(name, v, true)
	}
	return all
}

// Metadata returns the entries name=value that sessions must have, or nil if
// there are none.
func (q Query) Metadata() map[string]string {
	entries := q.Words(paramMetadata, maxMetadata)
	if entries == nil {
		return nil
	}
	all := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			q.invalid(paramMetadata, "must have the form name=value")
		}
		if before, twice := all[name]; twice && before != value {
			q.invalid(paramMetadata, "asks for two values of one name")
		}
		all[name] = value
	}
	return all
}

// SessionID returns a session's id, or "" if it is absent.
func (q Query) SessionID(name string) string {
	v := q.Word(name)
	if v != "" && eventlog.ValidateClientSessionID(v) != nil {
		q.invalid(name, "must be a session id")
	}
	return v
}

// LogID returns a session's id, that of a memory scope's log, or "" if it is
// absent.
func (q Query) LogID(name string) string {
	if v := q.Word(name); eventlog.IsMemoryLog(v) {
		return v
	}
	return q.SessionID(name)
}

// OneOf returns one of some words, or "" if it is absent.
func OneOf[T ~string](q Query, name string, words []T) T {
	v := T(q.Word(name))
	if v != "" && !slices.Contains(words, v) {
		q.invalid(name, fmt.Sprintf("must be one of %v", words))
	}
	return v
}

// time returns a time in ms since the epoch, or 0 if it is absent: such a
// number, a day (UTC) or a time of RFC 3339.
func (q Query) time(name string) int64 {
	v := q.Word(name)
	if v == "" {
		return 0
	}
	if ms, err := strconv.ParseInt(v, 10, 64); err == nil && ms > 0 {
		return ms
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, v); err == nil && t.UnixMilli() > 0 {
			return t.UnixMilli()
		}
	}
	q.invalid(name, "must be milliseconds since the epoch, a day such as 2026-01-31, or a time of RFC 3339")
	return 0
}

// Period returns a time span, from <= t < to; 0: no bound.
func (q Query) Period() (from, to int64) {
	from, to = q.time("from"), q.time("to")
	if to != 0 && to < from {
		q.invalid("to", "must not be before from")
	}
	return from, to
}

// Flag returns a switch; absent means byDefault.
func (q Query) Flag(name string, byDefault bool) bool {
	switch q.Values.Get(name) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	if q.Values.Has(name) {
		q.invalid(name, "must be true or false")
	}
	return byDefault
}

func ParseNumber(name, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, Invalid(name, "must be a whole number that is not negative")
	}
	return n, nil
}

func Invalid(field, reason string) error {
	return &eventlog.ValidationError{Field: field, Reason: reason}
}
