package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// origin is who set a key: a line of the file, or, with line 0, a variable or
// a flag. The zero value is a default.
type origin struct {
	name string
	line int
}

func (o origin) String() string {
	if o.line == 0 {
		return o.name
	}
	return fmt.Sprintf("%s:%d", o.name, o.line)
}

// problem is one thing wrong with a configuration. Its text holds no values.
type problem struct {
	at   origin
	path string
	text string
	// missing says that a key is needed; it stays quiet while something
	// beneath the path is misspelt or malformed.
	missing bool
}

func (p problem) Error() string {
	var parts []string
	for _, s := range []string{p.at.String(), p.path, p.text} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// joined returns the problems as one error, in the file's order; nil if there
// are none.
func joined(problems []problem) error {
	line := func(p problem) int {
		if p.at.line == 0 {
			return math.MaxInt
		}
		return p.at.line
	}
	slices.SortStableFunc(problems, func(a, b problem) int {
		return cmp.Compare(line(a), line(b))
	})
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// without drops the problems that only follow from the malformed ones.
func without(problems, malformed []problem) []problem {
	return slices.DeleteFunc(problems, func(p problem) bool {
		return slices.ContainsFunc(malformed, func(m problem) bool {
			return within(p.path, m.path) || p.missing && within(m.path, p.path)
		})
	})
}
