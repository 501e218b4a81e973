package evidence

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// TextOf returns the text by which a producer knows a chunk, or "".
func TextOf(r eventlog.Record) string {
	chunk, err := r.Chunk()
	if err != nil {
		return ""
	}
	if delta, ok := chunk.(*eventlog.TextDelta); ok {
		name, _, _ := strings.Cut(delta.Delta, " ")
		return name + " "
	}
	return ""
}

// Parse reads records as …/records lists them.
func Parse(raw []byte) ([]eventlog.Record, error) {
	var out []eventlog.Record
	for line := range bytes.Lines(raw) {
		var r eventlog.Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// DeadOf returns what records say was truncated.
func DeadOf(records []eventlog.Record) (dead eventlog.Truncations, err error) {
	for _, r := range records {
		if err := dead.Add(r); err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// Timeless leaves out when records were stored: nodes need not agree on that
// to the millisecond, and no fold looks at it.
func Timeless(lines []byte) []byte { return storedAt.ReplaceAll(lines, []byte("$1,")) }

var storedAt = regexp.MustCompile(`(?m)^(\{"sequence":\d+),"time":"[^"]*",`)
