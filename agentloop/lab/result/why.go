package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// partWords says in words which part of a model request has changed, the likeliest cause first.
var partWords = []struct{ part, word string }{
	{PartPrompt, "prompt"},
	{PartModel, "model"},
	{PartTools, "tool schema"},
	{PartMemory, "memory"},
	{PartOutput, "output schema"},
	{PartMessages, "messages"},
}

// changedParts names what differs between two model requests.
func changedParts(a, b Decision) string {
	var words []string
	for _, p := range partWords {
		if a.Parts[p.part] != b.Parts[p.part] {
			words = append(words, p.word)
		}
	}
	if len(words) > 1 && words[len(words)-1] == "messages" {
		words = words[:len(words)-1] // messages hold what the others say, and follow from it
	}
	if words == nil {
		if a.Name != b.Name {
			return "model"
		}
		return "request"
	}
	return strings.Join(words, ", ")
}

// why explains a divergence: what changed in the model's request before it, and how the decision
// differs.
func (d *divergence) why(a, b Lane) string {
	asked := parts(a, b, isRequest)
	switch {
	case asked != nil && asked.a != nil && asked.b != nil && (d.kind() == ModelRequest || asked.place <= d.place):
		cause := changedParts(*asked.a, *asked.b)
		if d.kind() == ModelRequest {
			return cause + " changed"
		}
		return fmt.Sprintf("%s changed in the request at sequence %d; %s", cause, asked.sequence(a), d.detail())
	case d.kind() == ModelAnswer || d.kind() == ToolCall || d.kind() == SubAgent:
		return "model: another answer to the same request; " + d.detail()
	}
	return d.detail()
}

// detail says how the decision differs.
func (d *divergence) detail() string {
	switch {
	case d.b == nil:
		return d.a.what() + " is missing"
	case d.a == nil:
		return d.b.what() + " is new"
	case d.a.Kind == Approval && d.b.Kind != Approval:
		return d.a.what() + " is avoided"
	case d.b.Kind == Approval && d.a.Kind != Approval:
		return d.b.what() + " is added"
	case d.a.Kind != d.b.Kind || d.a.Name != d.b.Name:
		return fmt.Sprintf("%s instead of %s", d.b.what(), d.a.what())
	case d.a.Kind == ToolCall || d.a.Kind == SubAgent:
		if names := changedMembers(d.a.Content, d.b.Content); len(names) > 0 {
			return d.a.what() + " has other arguments: " + strings.Join(names, ", ")
		}
		return d.a.what() + " has other arguments"
	}
	return d.a.what() + " differs"
}

// what names the decision.
func (d *Decision) what() string {
	if d.Name == "" {
		return string(d.Kind)
	}
	return string(d.Kind) + " " + d.Name
}

// changedMembers names the members in which two JSON objects differ.
func changedMembers(a, b json.RawMessage) []string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return nil
	}
	names := map[string]bool{}
	for name, v := range x {
		names[name] = !bytes.Equal(v, y[name])
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			names[name] = true
		}
	}
	maps.DeleteFunc(names, func(_ string, differs bool) bool { return !differs })
	return slices.Sorted(maps.Keys(names))
}

// How much of a decision's content is shown, and how much of it before the difference; characters.
const (
	shown  = 240
	before = 60
)

// words says what was decided, cut to what differs from another decision; "nothing" for none.
func (d *Decision) words(other *Decision) string {
	if d == nil {
		return "nothing"
	}
	text := []rune(string(d.Content))
	from := 0
	if other != nil && !bytes.Equal(d.Content, other.Content) {
		o := []rune(string(other.Content))
		for from < len(text) && from < len(o) && text[from] == o[from] {
			from++
		}
	}
	out := ""
	if from = max(from-before, 0); from > 0 && len(text) > shown {
		text, out = text[from:], "…"
	}
	if len(text) > shown {
		text = append(text[:shown:shown], '…')
	}
	return strings.TrimSpace(d.what() + " " + out + string(text))
}
