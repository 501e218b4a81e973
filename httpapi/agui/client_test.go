package agui_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// client is a client of the protocol: it refuses events that are out of order, and has the
// messages and the state.
type client struct {
	t        *testing.T
	running  bool
	over     bool
	open     map[string]bool // "text m", "call c", "step s", …
	messages []object
	state    any
	known    bool // of this stream: a snapshot came before
	activity map[string]bool
	last     object // the event that ended the run
	saw      string // the id of the last event that has one
}

func newClient(t *testing.T, messages ...object) *client {
	return &client{t: t, open: map[string]bool{}, messages: messages, state: object{}, activity: map[string]bool{}}
}

func (c *client) takeAll(all []frame) {
	c.t.Helper()
	for _, f := range all {
		c.take(f)
	}
}

// again is what a client does that begins another stream.
func (c *client) again() { c.running, c.over, c.known, c.open = false, false, false, map[string]bool{} }

func (c *client) begins(what string) {
	c.t.Helper()
	require.False(c.t, c.open[what], "%s begins twice", what)
	c.open[what] = true
}

func (c *client) goesOn(what string) {
	c.t.Helper()
	require.True(c.t, c.open[what], "%s is not open", what)
}

func (c *client) ends(what string) {
	c.t.Helper()
	c.goesOn(what)
	delete(c.open, what)
}

func (c *client) find(id string) object {
	for _, m := range c.messages {
		if m["id"] == id {
			return m
		}
	}
	return nil
}

func (c *client) call(id string) (message, call object) {
	for _, m := range c.messages {
		calls, _ := m["toolCalls"].([]any)
		for _, tc := range calls {
			if tc.(object)["id"] == id {
				return m, tc.(object)
			}
		}
	}
	return nil, nil
}

func noNulls(t *testing.T, v any) {
	t.Helper()
	if o, ok := v.(object); ok {
		for name, value := range o {
			require.NotNil(t, value, name)
			if name != "snapshot" && name != "input" && name != "delta" && name != "value" && name != "result" && name != "patch" {
				noNulls(t, value)
			}
		}
	}
}

func (c *client) take(f frame) {
	c.t.Helper()
	e := f.event
	noNulls(c.t, e)
	if f.id != "" {
		c.saw = f.id
	}
	require.False(c.t, c.over && f.kind() != "RUN_STARTED", "%s after the end", f.kind())
	require.True(c.t, c.running || f.kind() == "RUN_STARTED" || f.kind() == "RUN_ERROR", "%s comes first", f.kind())
	text := func(name string) string {
		s, ok := e[name].(string)
		require.True(c.t, ok, "%s of %s", name, f.kind())
		return s
	}
	delta := func() string {
		require.NotEmpty(c.t, text("delta"))
		return text("delta")
	}
	grow := func(m object) {
		content, _ := m["content"].(string)
		m["content"] = content + delta()
	}
	switch f.kind() {
	case "RUN_STARTED":
		require.False(c.t, c.running && !c.over, "a run begins in a run")
		c.running, c.over = true, false
		for _, m := range e["input"].(object)["messages"].([]any) {
			if c.find(m.(object)["id"].(string)) == nil {
				c.messages = append(c.messages, m.(object))
			}
		}
	case "RUN_FINISHED":
		require.Empty(c.t, c.open)
		c.over, c.last = true, e
	case "RUN_ERROR":
		text("message")
		c.over, c.last = true, e
	case "STEP_STARTED":
		c.begins("step " + text("stepName"))
	case "STEP_FINISHED":
		c.ends("step " + text("stepName"))
	case "TEXT_MESSAGE_START", "REASONING_MESSAGE_START":
		id := text("messageId")
		c.begins(f.kind()[:4] + id)
		if c.find(id) == nil {
			c.messages = append(c.messages, object{"id": id, "role": text("role"), "content": ""})
		}
	case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT":
		c.goesOn(f.kind()[:4] + text("messageId"))
		grow(c.find(text("messageId")))
	case "TEXT_MESSAGE_END", "REASONING_MESSAGE_END":
		c.ends(f.kind()[:4] + text("messageId"))
	case "REASONING_START":
		c.begins("span " + text("messageId"))
	case "REASONING_END":
		c.ends("span " + text("messageId"))
	case "TOOL_CALL_START":
		id, parent := text("toolCallId"), text("parentMessageId")
		c.begins("call " + id)
		if _, tc := c.call(id); tc != nil {
			break
		}
		m := c.find(parent)
		if m == nil {
			m = object{"id": parent, "role": "assistant"}
			c.messages = append(c.messages, m)
		}
		calls, _ := m["toolCalls"].([]any)
		m["toolCalls"] = append(calls, object{"id": id, "type": "function", "function": object{"name": text("toolCallName"), "arguments": ""}})
	case "TOOL_CALL_ARGS":
		c.goesOn("call " + text("toolCallId"))
		_, tc := c.call(text("toolCallId"))
		fn := tc["function"].(object)
		fn["arguments"] = fn["arguments"].(string) + delta()
	case "TOOL_CALL_END":
		c.ends("call " + text("toolCallId"))
	case "TOOL_CALL_RESULT":
		c.result(object{"id": text("messageId"), "role": "tool", "toolCallId": text("toolCallId"), "content": text("content")})
	case "STATE_SNAPSHOT":
		c.state, c.known = e["snapshot"], true
	case "STATE_DELTA":
		require.True(c.t, c.known, "a delta without a snapshot")
		c.state = patched(c.t, c.state, e["delta"])
	case "MESSAGES_SNAPSHOT":
		c.snapshot(e["messages"].([]any))
	case "ACTIVITY_SNAPSHOT":
		c.activity[text("messageId")] = true
		m := object{"id": text("messageId"), "role": "activity", "activityType": text("activityType"), "content": e["content"]}
		if old := c.find(text("messageId")); old != nil {
			old["content"] = m["content"]
			break
		}
		c.messages = append(c.messages, m)
	case "ACTIVITY_DELTA":
		m := c.find(text("messageId"))
		require.NotNil(c.t, m)
		m["content"] = patched(c.t, m["content"], e["patch"])
	case "CUSTOM":
	default:
		c.t.Fatalf("unknown event %s", f.kind())
	}
}

// result places the result of a call after its call.
func (c *client) result(m object) {
	require.Nil(c.t, c.find(m["id"].(string)), "a result comes twice")
	owner, _ := c.call(m["toolCallId"].(string))
	require.NotNil(c.t, owner, "the call of a result is not known")
	at := 0
	for c.messages[at]["id"] != owner["id"] {
		at++
	}
	for at++; at < len(c.messages) && c.messages[at]["role"] == "tool"; at++ {
	}
	c.messages = append(c.messages[:at:at], append([]object{m}, c.messages[at:]...)...)
}

func (c *client) snapshot(all []any) {
	next := map[string]object{}
	reasons := false
	for _, m := range all {
		next[m.(object)["id"].(string)] = m.(object)
		reasons = reasons || m.(object)["role"] == "reasoning"
	}
	require.Len(c.t, next, len(all), "an id is there twice")
	var kept []object
	has := map[string]bool{}
	for _, m := range c.messages {
		id := m["id"].(string)
		if n, ok := next[id]; ok {
			m = n
		} else if m["role"] != "activity" && (m["role"] != "reasoning" || reasons) {
			continue
		}
		kept, has[id] = append(kept, m), true
	}
	for _, m := range all {
		if !has[m.(object)["id"].(string)] {
			kept = append(kept, m.(object))
		}
	}
	c.messages = kept
}

func patched(t *testing.T, doc, ops any) any {
	t.Helper()
	raw, err := json.Marshal(doc)
	require.NoError(t, err)
	var patch []eventlog.PatchOp
	rawOps, err := json.Marshal(ops)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(rawOps, &patch))
	next, _, err := projector.Patch(raw, patch, projector.MaxPatchWork)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(next, &v))
	return v
}

// conversation is what the messages say: without activities, and empty reasoning.
func (c *client) conversation() (all []object) {
	for _, m := range c.messages {
		if m["role"] == "activity" || m["role"] == "reasoning" && m["content"] == "" {
			continue
		}
		all = append(all, m)
	}
	return all
}
