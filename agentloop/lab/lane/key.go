package lane

import (
	"bytes"
	"encoding/json"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Keys names the conversations of model calls. It remembers messages, which each call of a
// conversation has again. The zero value is ready; it is not safe for concurrent use.
type Keys struct{ hashes map[message]string }

// message is one that has the same hash as another of the same fields: what they point to does not
// change.
type message struct {
	role          model.Role
	content, tool string
	failed        bool
	files         *fact.MessageFile
	parts         *fact.TurnPart
	lengths       [2]int
}

// Of returns the key of a conversation: the same messages have the same key. The ids of calls, what
// only the provider reads, and how a result's JSON is written don't count.
func (k *Keys) Of(messages []model.Message) string {
	hashes := make([]string, len(messages))
	for i, m := range messages {
		of := message{m.Role, m.Content, m.ToolName, m.Failed, first(m.Files), first(m.Parts), [2]int{len(m.Files), len(m.Parts)}}
		hash, ok := k.hashes[of]
		if !ok {
			if k.hashes == nil {
				k.hashes = map[message]string{}
			}
			hash = hashOf(said(m))
			k.hashes[of] = hash
		}
		hashes[i] = hash
	}
	return hashOf(hashes)
}

func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

type saying struct {
	Role    model.Role         `json:"role"`
	Content string             `json:"content,omitempty"`
	Files   []fact.MessageFile `json:"files,omitempty"`
	Parts   []any              `json:"parts,omitempty"`
	Tool    string             `json:"tool,omitempty"`
	Failed  bool               `json:"failed,omitempty"`
}

func said(m model.Message) saying {
	out := saying{Role: m.Role, Content: m.Content, Files: m.Files, Parts: partsOf(m.Parts), Tool: m.ToolName, Failed: m.Failed}
	if m.Role == model.RoleTool && !m.Failed {
		out.Content = string(result.Canonical([]byte(m.Content)))
	}
	return out
}

type asked struct {
	Call      string          `json:"call"`
	Arguments json.RawMessage `json:"arguments"`
}

// partsOf are the parts of an answer without ids and without what only the provider reads.
func partsOf(parts []fact.TurnPart) (out []any) {
	for _, p := range parts {
		if p.ToolCall != nil {
			out = append(out, asked{p.ToolCall.Name, Arguments(p.ToolCall.Arguments)})
			continue
		}
		p.ProviderData = nil
		if p.Source != nil {
			source := *p.Source
			source.ID, p.Source = "", &source
		}
		if (p.Text != "" || p.Reasoning != "") || p.Source != nil || p.File != nil {
			out = append(out, p)
		}
	}
	return out
}

// Arguments are the arguments of a call in one form. None are an empty object.
func Arguments(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	return result.Canonical(raw)
}

func hashOf(v any) string {
	raw, err := eventlog.Marshal(v)
	if err != nil {
		return "" // not of the values here
	}
	return result.HashOf(result.Canonical(raw))
}

// PartsOf are the hashes of what a model request is made of, but for its messages and memories,
// which are in the records.
func PartsOf(req model.Request, modelID string, output json.RawMessage) map[string]string {
	return map[string]string{
		result.PartPrompt: hashOf(req.System), result.PartModel: hashOf(modelID), result.PartTools: hashOf(req.Tools), result.PartOutput: hashOf(string(output)),
	}
}
