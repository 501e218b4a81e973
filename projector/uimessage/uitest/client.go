// Package uitest reads UI message streams as the AI SDK's clients do, for
// tests: with the strict schema of every version at once, and the rules by
// which they put a message together.
package uitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Part is a part of a message.
type Part = map[string]any

// Client puts an assistant's message together.
type Client struct {
	ID        string
	Parts     []Part
	Finished  bool
	Aborted   bool
	Reason    string // why it finished
	ErrorText string
	Metadata  []any
	// Transient are the data parts that are in no message.
	Transient []Part

	blocks map[string]int
	inputs map[string]string
}

// Reconnect forgets what a client keeps in memory only.
func (c *Client) Reconnect() { c.blocks, c.inputs, c.Finished, c.Aborted = nil, nil, false, false }

// Clone returns a client that can continue by itself.
func (c *Client) Clone() *Client {
	n := *c
	n.blocks, n.inputs = maps.Clone(c.blocks), maps.Clone(c.inputs)
	n.Transient = slices.Clone(c.Transient)
	n.Parts = make([]Part, len(c.Parts))
	for i, p := range c.Parts {
		n.Parts[i] = maps.Clone(p)
	}
	return &n
}

// fields are those that every version knows; the first ones are required.
var fields = map[string][2][]string{
	"start":                 {{}, {"messageId", "messageMetadata"}},
	"start-step":            {},
	"finish-step":           {},
	"text-start":            {{"id"}},
	"text-delta":            {{"id", "delta"}},
	"text-end":              {{"id"}},
	"reasoning-start":       {{"id"}},
	"reasoning-delta":       {{"id", "delta"}},
	"reasoning-end":         {{"id"}},
	"tool-input-start":      {{"toolCallId", "toolName"}, {"providerExecuted"}},
	"tool-input-delta":      {{"toolCallId", "inputTextDelta"}},
	"tool-input-available":  {{"toolCallId", "toolName", "input"}, {"providerExecuted"}},
	"tool-input-error":      {{"toolCallId", "toolName", "input", "errorText"}, {"providerExecuted"}},
	"tool-output-available": {{"toolCallId", "output"}, {"providerExecuted"}},
	"tool-output-error":     {{"toolCallId", "errorText"}, {"providerExecuted"}},
	"tool-approval-request": {{"approvalId", "toolCallId"}},
	"tool-output-denied":    {{"toolCallId"}},
	"source-url":            {{"sourceId", "url"}, {"title"}},
	"source-document":       {{"sourceId", "mediaType", "title"}, {"filename"}},
	"file":                  {{"url", "mediaType"}},
	"finish":                {{}, {"finishReason", "messageMetadata"}},
	"abort":                 {},
	"error":                 {{"errorText"}},
}

var mayBeNull = []string{"input", "output", "data"}

func check(p Part) error {
	typ, _ := p["type"].(string)
	known, ok := fields[typ]
	if len(typ) > 5 && typ[:5] == "data-" {
		known, ok = [2][]string{{"data"}, {"id", "transient"}}, true
	}
	if !ok {
		return fmt.Errorf("unknown type %q", typ)
	}
	for _, name := range known[0] {
		if _, ok := p[name]; !ok {
			return fmt.Errorf("%s lacks %s", typ, name)
		}
	}
	for name, v := range p {
		switch {
		case name == "type":
		case !slices.Contains(known[0], name) && !slices.Contains(known[1], name):
			return fmt.Errorf("%s has the unknown field %s", typ, name)
		case v == nil && !slices.Contains(mayBeNull, name):
			return fmt.Errorf("%s of %s is null", name, typ)
		}
	}
	return nil
}

// Read takes a frame.
func (c *Client) Read(frame []byte) error {
	var p Part
	if err := json.Unmarshal(frame, &p); err != nil || bytes.ContainsAny(frame, "\r\n") {
		return fmt.Errorf("frame %q: %v", frame, err)
	}
	if err := check(p); err != nil {
		return fmt.Errorf("frame %s: %w", frame, err)
	}
	if c.ErrorText != "" {
		return nil
	}
	if err := c.apply(p); err != nil {
		return fmt.Errorf("frame %s: %w", frame, err)
	}
	return nil
}

func (c *Client) apply(p Part) error {
	text := func(name string) string { s, _ := p[name].(string); return s }
	if c.blocks == nil {
		c.blocks, c.inputs = map[string]int{}, map[string]string{}
	}
	id := text("toolCallId")
	switch typ := text("type"); typ {
	case "start":
		if text("messageId") != "" {
			c.ID = text("messageId")
		}
		c.meta(p)
	case "start-step":
		c.add(Part{"type": "step-start"})
	case "finish-step":
		c.blocks = map[string]int{}
	case "text-start", "reasoning-start":
		kind := typ[:len(typ)-len("-start")]
		c.blocks[kind+text("id")] = len(c.Parts)
		c.add(Part{"type": kind, "text": ""})
	case "text-delta", "reasoning-delta":
		i, ok := c.blocks[typ[:len(typ)-len("-delta")]+text("id")]
		if !ok {
			return fmt.Errorf("no block is open")
		}
		c.Parts[i]["text"] = c.Parts[i]["text"].(string) + text("delta")
	case "text-end", "reasoning-end":
		key := typ[:len(typ)-len("-end")] + text("id")
		if _, ok := c.blocks[key]; !ok {
			return fmt.Errorf("no block is open")
		}
		delete(c.blocks, key)
	case "tool-input-start":
		c.inputs[id] = ""
		c.tool(p, "input-streaming")
	case "tool-input-delta":
		if _, ok := c.inputs[id]; !ok {
			return fmt.Errorf("no input is open")
		}
		c.inputs[id] += text("inputTextDelta")
		var input any
		_ = json.Unmarshal([]byte(c.inputs[id]), &input)
		c.find(id)["input"] = input
	case "tool-input-available":
		c.tool(p, "input-available")["input"] = p["input"]
	case "tool-input-error":
		t := c.tool(p, "output-error")
		t["input"], t["errorText"] = p["input"], p["errorText"]
	case "tool-approval-request", "tool-output-denied", "tool-output-available", "tool-output-error":
		return c.answer(typ, id, p)
	case "source-url", "source-document", "file":
		c.add(p)
	case "finish":
		c.Finished, c.Reason = true, text("finishReason")
		c.meta(p)
	case "abort":
		c.Aborted = true
	case "error":
		c.ErrorText = text("errorText")
	default:
		c.data(p)
	}
	return nil
}

func (c *Client) meta(p Part) {
	if m := p["messageMetadata"]; m != nil {
		c.Metadata = append(c.Metadata, m)
	}
}

func (c *Client) add(p Part) { c.Parts = append(c.Parts, p) }

func (c *Client) find(call string) Part {
	for i := len(c.Parts) - 1; i >= 0; i-- {
		if c.Parts[i]["toolCallId"] == call {
			return c.Parts[i]
		}
	}
	return nil
}

func (c *Client) tool(p Part, state string) Part {
	t := c.find(p["toolCallId"].(string))
	if t == nil {
		t = Part{"toolCallId": p["toolCallId"]}
		c.add(t)
	}
	t["type"], t["state"] = "tool-"+p["toolName"].(string), state
	delete(t, "input")
	executed(t, p)
	return t
}

func executed(t, p Part) {
	if by, ok := p["providerExecuted"]; ok {
		t["providerExecuted"] = by
	}
}

func (c *Client) answer(typ, id string, p Part) error {
	t := c.find(id)
	if t == nil {
		return fmt.Errorf("no such call")
	}
	switch typ {
	case "tool-approval-request":
		t["state"], t["approval"] = "approval-requested", map[string]any{"id": p["approvalId"]}
		return nil
	case "tool-output-denied":
		t["state"] = "output-denied"
	case "tool-output-available":
		t["state"], t["output"] = "output-available", p["output"]
	default:
		t["state"], t["errorText"] = "output-error", p["errorText"]
	}
	executed(t, p)
	return nil
}

func (c *Client) data(p Part) {
	if p["transient"] == true {
		c.Transient = append(c.Transient, p)
		return
	}
	if p["id"] != nil {
		for _, q := range c.Parts {
			if q["type"] == p["type"] && q["id"] == p["id"] {
				q["data"] = p["data"]
				return
			}
		}
	}
	c.add(p)
}

// Normal returns the parts as they can be compared: what only says how far a
// client has read is left out.
func Normal(parts []Part) []Part {
	var normal []Part
	for _, p := range parts {
		p = maps.Clone(p)
		switch p["type"] {
		case "text", "reasoning":
			delete(p, "state")
		default:
			if p["state"] != "approval-requested" { // clients keep what they have answered
				delete(p, "approval")
			}
			if p["state"] == "approval-responded" { // by this client or another
				p["state"] = "input-available"
			}
			if p["state"] == "input-streaming" { // as far as it could be parsed
				delete(p, "input")
			}
		}
		normal = append(normal, p)
	}
	return normal
}

// PartsOf returns the parts of a rendered message as a client has them.
func PartsOf(rendered any) []Part {
	raw, err := json.Marshal(rendered)
	if err != nil {
		panic(err)
	}
	var parts []Part
	if err := json.Unmarshal(raw, &parts); err != nil {
		panic(err)
	}
	return parts
}
