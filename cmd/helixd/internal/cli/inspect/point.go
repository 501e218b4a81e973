package inspect

import (
	"fmt"
	"regexp"
	"strconv"
)

// point is a session as it was at a sequence.
type point struct {
	session string
	at      *uint64 // nil: at its head
}

var (
	atSequence = regexp.MustCompile(`^(.*)@(\d*)$`)
	sequences  = regexp.MustCompile(`^(\d*)\.\.(\d*)$`)
)

// parsePoint reads SESSION@N. Without a number it is the head, which an id
// that itself ends like this needs after it: "a@5@".
func parsePoint(text string) (m point, err error) {
	parts := atSequence.FindStringSubmatch(text)
	if parts == nil {
		return point{session: text}, nil
	}
	m.session = parts[1]
	m.at, err = parseSequence(parts[2])
	return m, err
}

// parseRange reads A..B, of which both may be left out.
func parseRange(text string) (from, to *uint64, err error) {
	parts := sequences.FindStringSubmatch(text)
	if parts == nil {
		return nil, nil, fmt.Errorf("%q is neither a range of sequences, A..B, nor a point of a session, SESSION@N", text)
	}
	if from, err = parseSequence(parts[1]); err != nil {
		return nil, nil, err
	}
	to, err = parseSequence(parts[2])
	return from, to, err
}

func parseSequence(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%s is no sequence", text)
	}
	return &n, nil
}
