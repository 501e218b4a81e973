package projector

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// memoriesMark marks the message that reminds an agent of memories.
const memoriesMark = "memories"

// recalled records which memories the turn's agent was given. They are one hidden message
// of the user's. An empty list adds no message, but the turn does not recall again.
func (s *Session) recalled(r eventlog.Record, f *fact.MemoryRecalled) string {
	if s.Turn == nil {
		return "no turn is open"
	}
	if s.Turn.Recalled {
		return "the turn has recalled before"
	}
	s.Turn.Recalled = true
	if len(f.Memories) == 0 {
		return ""
	}
	meta := struct {
		Hidden bool     `json:"hidden"`
		Helix  string   `json:"helix"`
		IDs    []string `json:"memoryIds"`
	}{Hidden: true, Helix: memoriesMark}
	var text strings.Builder
	text.WriteString("What you remember that may matter here:\n")
	for _, m := range f.Memories {
		meta.IDs = append(meta.IDs, m.MemoryID)
		text.WriteString("- " + strings.Join(strings.Fields(m.Content), " ") + "\n")
	}
	metadata, _ := json.Marshal(meta)
	s.Messages = append(s.Messages, Message{
		Role: RoleUser, Turn: s.Turn.Number, Timestamp: f.Timestamp, Sequence: r.Sequence, Content: text.String(), Metadata: metadata,
	})
	return ""
}

// recalled reports whether the message contains recalled memories.
func (m Message) recalled() bool {
	_, helix := m.marks()
	return m.Role == RoleUser && helix == memoriesMark
}

// RecalledIDs returns the ids of the memories that the rest of the session's conversation
// contains.
func (s *Session) RecalledIDs() []string {
	var ids []string
	for _, m := range s.Messages {
		if !m.recalled() {
			continue
		}
		var meta struct {
			IDs []string `json:"memoryIds"`
		}
		if json.Unmarshal(m.Metadata, &meta) == nil {
			ids = append(ids, meta.IDs...)
		}
	}
	return ids
}
