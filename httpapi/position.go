package httpapi

import (
	"math"
	"strconv"
	"strings"
)

// position is how much of a chat stream a client has: all frames of the records
// up to a sequence, and some frames of the next record that makes any. As an
// SSE id it is "m", or "m.j" (aisdk.md, Resume).
type position struct {
	sequence uint64
	frames   int
}

func (p position) String() string { return string(p.append(nil)) }

// reaches returns the least sequence of the last record that the client has a
// frame of.
func (p position) reaches() uint64 {
	if p.frames > 0 && p.sequence < math.MaxUint64 {
		return p.sequence + 1
	}
	return p.sequence
}

func (p position) append(b []byte) []byte {
	b = strconv.AppendUint(b, p.sequence, 10)
	if p.frames == 0 {
		return b
	}
	return strconv.AppendInt(append(b, '.'), int64(p.frames), 10)
}

// parsePosition reads a position as it is sent, and nothing else.
func parsePosition(name, s string) (position, error) {
	whole, part, some := strings.Cut(s, ".")
	var p position
	var err error
	if p.sequence, err = parseNumber(name, whole); err == nil && some {
		p.frames, err = strconv.Atoi(part)
	}
	if err != nil || p.frames < 0 || p.String() != s {
		return position{}, invalid(name, "must be an id of the stream: a sequence such as 12, or 12.3")
	}
	return p, nil
}
