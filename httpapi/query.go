package httpapi

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
)

// query reads the parameters of a URL strictly. Unknown ones are ignored.
type query struct{ values url.Values }

// parseQuery refuses what can be read in two ways. Even then it returns what
// it could read.
func parseQuery(raw string) (query, error) {
	values, err := url.ParseQuery(raw)
	q := query{values}
	if err != nil {
		return q, &eventlog.ValidationError{Reason: "the query string is malformed"}
	}
	for name, v := range values {
		switch {
		case !utf8.ValidString(name):
			return q, &eventlog.ValidationError{Reason: "the query string is not valid UTF-8"}
		case len(v) > 1:
			return q, invalid(name, "is given twice")
		case !utf8.ValidString(v[0]):
			return q, invalid(name, "must be valid UTF-8")
		}
	}
	return q, nil
}

// number returns an unsigned decimal number and whether it is given.
func (q query) number(name string) (n uint64, given bool, err error) {
	if !q.values.Has(name) {
		return 0, false, nil
	}
	n, err = parseNumber(name, q.values.Get(name))
	return n, true, err
}

// integer returns a number within [least, most], or byDefault.
func (q query) integer(name string, byDefault, least, most int) (int, error) {
	n, given, err := q.number(name)
	switch {
	case err != nil:
		return 0, err
	case !given:
		return byDefault, nil
	case n < uint64(least) || n > uint64(most):
		return 0, invalid(name, fmt.Sprintf("must be between %d and %d", least, most))
	}
	return int(n), nil
}

// page returns which part of a listing is asked for (facts 1.4).
func (q query) page() (offset, limit int, err error) {
	if offset, err = q.integer("offset", 0, 0, math.MaxInt32); err != nil {
		return 0, 0, err
	}
	limit, err = q.integer("limit", defaultPage, 1, maxPage)
	return offset, limit, err
}

// flag returns a switch; absent means off.
func (q query) flag(name string) (bool, error) {
	switch q.values.Get(name) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	if !q.values.Has(name) {
		return false, nil
	}
	return false, invalid(name, "must be true or false")
}

func parseNumber(name, s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, invalid(name, "must be a whole number that is not negative")
	}
	return n, nil
}

func invalid(field, reason string) error {
	return &eventlog.ValidationError{Field: field, Reason: reason}
}
