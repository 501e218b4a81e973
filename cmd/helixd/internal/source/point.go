package source

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// Point is a session as it was at a sequence.
type Point struct {
	Session string
	At      *uint64 // nil: at its head
}

// Stretch is a session between two sequences: what comes after From, up to To.
type Stretch struct {
	Session string
	From    uint64
	To      *uint64 // nil: the head
	Point   bool    // it was given as SESSION@N, and From is N
}

var (
	atSequence  = regexp.MustCompile(`^(.*)@(\d*)$`)
	atSequences = regexp.MustCompile(`^(.*)@(\d*)\.\.(\d*)$`)
	sequences   = regexp.MustCompile(`^(\d*)\.\.(\d*)$`)
)

// errNoSession refuses the point of a session without an id, such as that of a shell's unset
// variable: an empty id in the path of a request would be another route.
var errNoSession = flags.Misused(errors.New("the session's id must not be empty"))

// IsPoint reports whether a text is SESSION@N.
func IsPoint(text string) bool { return atSequence.MatchString(text) }

// ParsePoint reads SESSION@N. Without a number it is the head, which an id
// that itself ends like this needs after it: "a@5@". Its errors are misuse of the command,
// as those of the other functions here are.
func ParsePoint(text string) (p Point, err error) {
	if atSequences.MatchString(text) {
		return Point{}, flags.Misused(fmt.Errorf("%s is a stretch of a session; a point is needed, SESSION@N", text))
	}
	parts := atSequence.FindStringSubmatch(text)
	if parts == nil {
		return Point{Session: text}, nil
	}
	if p.Session = parts[1]; p.Session == "" {
		return p, errNoSession
	}
	p.At, err = parseSequence(parts[2])
	return p, err
}

// PointOr is ParsePoint for a command that has a flag for the sequence, too. If the flag
// is given, the text must be the session's id alone.
func PointOr(text string, at *uint64) (Point, error) {
	if at == nil {
		return ParsePoint(text)
	}
	id, err := ParseSession(text)
	return Point{Session: id, At: at}, err
}

// StretchOr reads SESSION@A..B, of which both sequences may be left out, and SESSION@N, for
// a command that has flags for the sequences, too. If one of them is given, the text must be
// the session's id alone.
func StretchOr(text string, from uint64, to *uint64) (Stretch, error) {
	if from != 0 || to != nil {
		id, err := ParseSession(text)
		return Stretch{Session: id, From: from, To: to}, err
	}
	session, after, to, err := Between(text)
	if after != nil {
		from = *after
	}
	if err != nil || session != text {
		return Stretch{Session: session, From: from, To: to}, err
	}
	p, err := ParsePoint(text)
	if p.At == nil {
		return Stretch{Session: p.Session}, err
	}
	return Stretch{Session: p.Session, From: *p.At, Point: true}, nil
}

// Between reads SESSION@A..B, of which both sequences may be left out. Any other text is a
// session's id.
func Between(text string) (session string, from, to *uint64, err error) {
	parts := atSequences.FindStringSubmatch(text)
	if parts == nil {
		return text, nil, nil, nil
	}
	if parts[1] == "" {
		return "", nil, nil, errNoSession
	}
	from, to, err = ParseRange(parts[2] + ".." + parts[3])
	return parts[1], from, to, err
}

// ParseRange reads A..B, of which both may be left out.
func ParseRange(text string) (from, to *uint64, err error) {
	parts := sequences.FindStringSubmatch(text)
	if parts == nil {
		return nil, nil, flags.Misused(fmt.Errorf("%q is neither a range of sequences, A..B, nor a point of a session, SESSION@N", text))
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
		return nil, flags.Misused(fmt.Errorf("%s is no sequence", text))
	}
	return &n, nil
}
