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

// Query reads the parameters of a URL strictly. The routing table refuses unknown ones.
type Query struct{ Values url.Values }

// The parameters that may be given several times.
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
	q := Query{values}
	if err != nil {
		return q, &eventlog.ValidationError{Reason: "the query string is malformed"}
	}
	for name, v := range values {
		switch {
		case !utf8.ValidString(name):
			return q, &eventlog.ValidationError{Reason: "the query string is not valid UTF-8"}
		case len(v) > 1 && name != ParamType && name != paramMetadata:
			return q, Invalid(name, "is given twice")
		case !utf8.ValidString(strings.Join(v, "")):
			return q, Invalid(name, "must be valid UTF-8")
		}
	}
	return q, nil
}

// Number returns an unsigned decimal number and whether it is given.
func (q Query) Number(name string) (n uint64, given bool, err error) {
	if !q.Values.Has(name) {
		return 0, false, nil
	}
	n, err = ParseNumber(name, q.Values.Get(name))
	return n, true, err
}

// Integer returns a number within [least, most], or byDefault.
func (q Query) Integer(name string, byDefault, least, most int) (int, error) {
	n, given, err := q.Number(name)
	switch {
	case err != nil:
		return 0, err
	case !given:
		return byDefault, nil
	case n < uint64(least) || n > uint64(most):
		return 0, Invalid(name, fmt.Sprintf("must be between %d and %d", least, most))
	}
	return int(n), nil
}

// Page returns which part of a listing is asked for.
func (q Query) Page() (offset, limit int, err error) {
	if offset, err = q.Integer("offset", 0, 0, math.MaxInt32); err != nil {
		return 0, 0, err
	}
	limit, err = q.Integer("limit", api.DefaultPage, 1, api.MaxPage)
	return offset, limit, err
}

// maxWord is the longest parameter that a listing is filtered by, in bytes.
const maxWord = 1 << 10

// Word returns a text, or "" if it is absent. An empty value is an error: a client whose
// filter is empty by mistake must not get everything.
func (q Query) Word(name string) (string, error) {
	v := q.Values.Get(name)
	switch {
	case v == "" && q.Values.Has(name):
		return "", Invalid(name, "must not be empty")
	case len(v) > maxWord:
		return "", Invalid(name, fmt.Sprintf("must have at most %d bytes", maxWord))
	}
	return v, nil
}

// Words returns the texts of a parameter that may be repeated, at most so many,
// or nil if it is absent.
func (q Query) Words(name string, most int) ([]string, error) {
	all := q.Values[name]
	if len(all) > most {
		return nil, Invalid(name, fmt.Sprintf("must be given at most %d times", most))
	}
	for _, v := range all {
		if _, err := (Query{url.Values{name: {v}}}).Word(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Metadata returns the entries name=value that sessions must have, or nil if
// there are none.
func (q Query) Metadata() (map[string]string, error) {
	entries, err := q.Words(paramMetadata, maxMetadata)
	if err != nil || entries == nil {
		return nil, err
	}
	all := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, Invalid(paramMetadata, "must have the form name=value")
		}
		if before, twice := all[name]; twice && before != value {
			return nil, Invalid(paramMetadata, "asks for two values of one name")
		}
		all[name] = value
	}
	return all, nil
}

// SessionID returns a session's id, or "" if it is absent.
func (q Query) SessionID(name string) (string, error) {
	v, err := q.Word(name)
	if err == nil && v != "" && eventlog.ValidateClientSessionID(v) != nil {
		err = Invalid(name, "must be a session id")
	}
	return v, err
}

// LogID returns a session's id, that of a memory scope's log, or "" if it is
// absent.
func (q Query) LogID(name string) (string, error) {
	if v, err := q.Word(name); err == nil && eventlog.IsMemoryLog(v) {
		return v, nil
	}
	return q.SessionID(name)
}

// OneOf returns one of some words, or "" if it is absent.
func OneOf[T ~string](q Query, name string, words []T) (T, error) {
	v, err := q.Word(name)
	if err == nil && v != "" && !slices.Contains(words, T(v)) {
		err = Invalid(name, fmt.Sprintf("must be one of %v", words))
	}
	return T(v), err
}

// time returns a time in ms since the epoch, or 0 if it is absent: such a
// number, a day (UTC) or a time of RFC 3339.
func (q Query) time(name string) (int64, error) {
	v, err := q.Word(name)
	if err != nil || v == "" {
		return 0, err
	}
	if ms, err := strconv.ParseInt(v, 10, 64); err == nil && ms > 0 {
		return ms, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, v); err == nil && t.UnixMilli() > 0 {
			return t.UnixMilli(), nil
		}
	}
	return 0, Invalid(name, "must be milliseconds since the epoch, a day such as 2026-01-31, or a time of RFC 3339")
}

// Period returns a time span, from <= t < to; 0: no bound.
func (q Query) Period() (from, to int64, err error) {
	if from, err = q.time("from"); err != nil {
		return 0, 0, err
	}
	to, err = q.time("to")
	if err == nil && to != 0 && to < from {
		err = Invalid("to", "must not be before from")
	}
	return from, to, err
}

// Paging is Page in the form of the read models.
func (q Query) Paging() (readmodel.Paging, error) {
	offset, limit, err := q.Page()
	return readmodel.Paging{Offset: offset, Limit: limit}, err
}

// Flag returns a switch; absent means off.
func (q Query) Flag(name string) (bool, error) {
	switch q.Values.Get(name) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	if !q.Values.Has(name) {
		return false, nil
	}
	return false, Invalid(name, "must be true or false")
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

// FlagOr is Flag with another default.
func (q Query) FlagOr(name string, byDefault bool) (bool, error) {
	if !q.Values.Has(name) {
		return byDefault, nil
	}
	return q.Flag(name)
}
