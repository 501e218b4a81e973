package modeltest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
)

// Collected is an answer put together from its events.
type Collected struct {
	Events    []model.Event
	Text      string
	Reasoning string
	Calls     []Call
	Sources   []model.Source
	Files     []model.File
	Data      []json.RawMessage // of the ends of parts that have some
}

// Call is a tool call as it streamed.
type Call struct{ ID, Name, Arguments string }

// Emit takes an event.
func (c *Collected) Emit(e model.Event) error {
	c.Events = append(c.Events, e)
	switch e := e.(type) {
	case model.TextDelta:
		c.Text += e.Text
	case model.ReasoningDelta:
		c.Reasoning += e.Text
	case model.PartEnd:
		if e.Data != nil {
			c.Data = append(c.Data, e.Data)
		}
	case model.Source:
		c.Sources = append(c.Sources, e)
	case model.File:
		c.Files = append(c.Files, e)
	case model.ToolCallStart:
		for len(c.Calls) <= e.Call {
			c.Calls = append(c.Calls, Call{})
		}
		c.Calls[e.Call].ID, c.Calls[e.Call].Name = e.ID, e.Name
	case model.ToolCallDelta:
		c.Calls[e.Call].Arguments += e.Text
	}
	return nil
}

// Check requires of a complete answer that no piece is empty and that every
// tool call starts once, continues only in between, and ends once.
func (c *Collected) Check(t testing.TB) {
	t.Helper()
	open := map[int]bool{} // false once it has ended
	for _, e := range c.Events {
		switch e := e.(type) {
		case model.TextDelta:
			require.NotEmpty(t, e.Text)
		case model.ReasoningDelta:
			require.NotEmpty(t, e.Text)
		case model.ToolCallStart:
			require.NotContains(t, open, e.Call)
			open[e.Call] = true
		case model.ToolCallDelta:
			require.NotEmpty(t, e.Text)
			require.True(t, open[e.Call])
		case model.ToolCallEnd:
			require.True(t, open[e.Call])
			open[e.Call] = false
		}
	}
	require.Len(t, open, len(c.Calls))
	for i := range c.Calls {
		require.False(t, open[i], "call %d has no end", i)
	}
}

// Ask makes a call that must succeed.
func Ask(t testing.TB, m model.Model, req model.Request) (model.Answer, *Collected) {
	t.Helper()
	var c Collected
	answer, err := m.Generate(t.Context(), req, c.Emit)
	require.NoError(t, err)
	c.Check(t)
	return answer, &c
}

// AskFor makes a call that must fail.
func AskFor(t testing.TB, m model.Model, req model.Request) (*model.Error, *Collected) {
	t.Helper()
	var c Collected
	answer, err := m.Generate(t.Context(), req, c.Emit)
	require.Zero(t, answer)
	var e *model.Error
	require.ErrorAs(t, err, &e)
	return e, &c
}

// Hello is the smallest request.
func Hello() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.RoleUser, Content: "hello"}}}
}

// Calls are tool calls: id, name and arguments of each.
func Calls(words ...string) []Call {
	var calls []Call
	for ; len(words) >= 3; words = words[3:] {
		calls = append(calls, Call{ID: words[0], Name: words[1], Arguments: words[2]})
	}
	return calls
}
