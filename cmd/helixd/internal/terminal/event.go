package terminal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// Event is an event of a stream. The last one is no chunk.
type Event struct {
	Type, Error, Status string
	Chunk               json.RawMessage
	Sequence            uint64

	Raw []byte // its JSON
}

// Line is an event in a line.
func (e Event) Line() string {
	if e.Type == "chunk" {
		return RecordLine(e.Sequence, string(eventlog.KindChunk), e.Chunk)
	}
	return e.last()
}

// last is the last event in a line.
func (e Event) last() string {
	switch {
	case e.Type == "error":
		return "failed: " + strconv.Quote(e.Error)
	case e.Status == string(eventlog.StreamActive): // of a replay
		return "continues"
	}
	return strings.TrimSpace("ended " + Printable(e.Status))
}

// RecordLine is a record in one line: sequence, kind, type, and the payload
// without what every record of the kind has.
func RecordLine(seq uint64, kind string, payload json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil {
		return fmt.Sprintf("%8d  %-5s  %q", seq, kind, payload) // it may hold what a terminal obeys
	}
	var typ string
	_ = json.Unmarshal(fields["type"], &typ) // "" if it has none
	common := []string{"type", "timestamp", "sessionId"}
	if kind == string(eventlog.KindChunk) {
		common = []string{"type", "timestamp", "agentId", "agentType"}
	}
	for _, name := range common {
		delete(fields, name)
	}
	rest, _ := json.Marshal(fields)
	return fmt.Sprintf("%8d  %-5s  %-22s %s", seq, Printable(kind), Printable(typ), printableJSON(rest))
}
