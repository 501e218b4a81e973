package web

import (
	"math"
	"strconv"
	"strings"
)

// Position is how much of a stream of frames a client has: all frames of the records up to
// a sequence, and some frames of the next record that makes any. As an SSE id it is "m", or
// "m.j" with j frames of the next record. Chat and AG-UI streams have such ids
// (chat/delivery.go, agui/stream.go); those of /sse are whole sequences (chunkEvent of
// internal/stream).
type Position struct {
	Sequence uint64
	Frames   int
}

func (p Position) String() string { return string(p.append(nil)) }

// Reaches returns the least sequence of the last record that the client has a
// frame of.
func (p Position) Reaches() uint64 {
	if p.Frames > 0 && p.Sequence < math.MaxUint64 {
		return p.Sequence + 1
	}
	return p.Sequence
}

func (p Position) append(b []byte) []byte {
	b = strconv.AppendUint(b, p.Sequence, 10)
	if p.Frames == 0 {
		return b
	}
	return strconv.AppendInt(append(b, '.'), int64(p.Frames), 10)
}

// ParsePosition parses a position in exactly the form of String.
func ParsePosition(name, s string) (Position, error) {
	whole, part, some := strings.Cut(s, ".")
	var p Position
	var err error
	if p.Sequence, err = ParseNumber(name, whole); err == nil && some {
		p.Frames, err = strconv.Atoi(part)
	}
	if err != nil || p.Frames < 0 || p.String() != s {
		return Position{}, Invalid(name, "must be an id of the stream: a sequence such as 12, or 12.3")
	}
	return p, nil
}
