package textstream_test

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector/uimessage"
)

// message is what a simple client makes of a stream: it concatenates deltas by
// id and keeps calls and results by theirs.
type message struct {
	Begun   bool
	Steps   int
	InStep  bool
	Order   []string // names in the order of their first appearance
	Blocks  map[string]string
	Calls   map[string]string
	Results map[string]string
	Error   string
	Finish  string // without its duration in a stream that continues
}

func assemble(t require.TestingT, frames []uimessage.Frame) message {
	m := message{Blocks: map[string]string{}, Calls: map[string]string{}, Results: map[string]string{}}
	place := func(in map[string]string, kind, id string, p part) string {
		name := fmt.Sprintf("%s %s of %q", kind, id, p.Metadata.ParentToolUseID)
		if _, there := in[name]; !there {
			in[name] = ""
			m.Order = append(m.Order, name)
		}
		return name
	}
	for _, f := range frames {
		switch p := parse(t, f); p.Type {
		case "start":
			m.Begun = true
		case "start-step":
			m.Steps, m.InStep = m.Steps+1, true
		case "finish-step":
			m.InStep = false
		case "text-start", "reasoning-start", "tool-input-start":
			place(m.Blocks, p.Type, p.ID, p)
		case "text-delta", "reasoning-delta":
			m.Blocks[place(m.Blocks, p.Type[:len(p.Type)-len("delta")]+"start", p.ID, p)] += *p.Text
		case "tool-input-delta":
			m.Blocks[place(m.Blocks, "tool-input-start", p.ID, p)] += *p.Delta
		case "tool-call":
			m.Calls[place(m.Calls, p.Type, p.ToolCallID, p)] = p.ToolName + string(p.Input)
		case "tool-result":
			m.Results[place(m.Results, p.Type, p.ToolCallID, p)] = p.ToolName + string(p.Output)
		case "error":
			m.Error = *p.Error
		case "finish":
			m.Finish = string(f)
		}
	}
	return m
}

// requireBalanced checks one response on its own: deltas and ends have their
// starts in it, what is begun is ended, and finish is last.
func requireBalanced(t require.TestingT, frames []uimessage.Frame) {
	open := map[string]bool{}
	steps := 0
	for i, f := range frames {
		p := parse(t, f)
		switch p.Type {
		case "text-start", "reasoning-start", "tool-input-start":
			require.False(t, open[p.ID], "%s is open: %s", p.ID, f)
			open[p.ID] = true
		case "text-delta", "reasoning-delta", "tool-input-delta":
			require.True(t, open[p.ID], "%s is not open: %s", p.ID, f)
		case "text-end", "reasoning-end", "tool-input-end":
			require.True(t, open[p.ID], "%s is not open: %s", p.ID, f)
			delete(open, p.ID)
		case "start-step":
			steps++
		case "finish-step":
			steps = min(steps, 1) - 1 // one may have begun before the cut
		case "finish":
			require.Equal(t, len(frames)-1, i, "finish is last")
		}
	}
	require.Empty(t, open, "every block is ended")
	require.LessOrEqual(t, steps, 0, "every step is finished")
}
