package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/projector"
)

// Two moments stand side by side, from where they part.
func TestCompare(t *testing.T) {
	mine := conversation()
	theirs := append([]projector.Message{}, mine[:3]...)
	theirs = append(theirs, projector.Message{
		Role: projector.RoleUser, Sequence: 30, Content: strings.Repeat("a long message that needs several lines, ", 3) + strings.Repeat("漢字", 30),
	})
	side := func(id, status, calls, steps, spent string, messages []projector.Message) string {
		return `{"sessionId":"` + id + `","sequence":24,"status":"` + status + `","agentType":"guide","messages":` + encoded(t, messages) +
			`,"toolCalls":` + calls + `,"steps":` + steps + `,` + spent + `}`
	}
	answer := `{"a":` + side("s", "completed",
		`[{"sessionId":"s","toolCallId":"c1","toolName":"look","arguments":{},"status":"done"},{"sessionId":"s","toolCallId":"c2","toolName":"look","arguments":{},"status":"failed"}]`,
		`[{"turn":1,"step":1,"durationMs":1200,"usage":{"prompt":54,"completion":61,"total":115}},{"turn":1,"step":2,"durationMs":300,"usage":{"prompt":1,"completion":2,"total":3}}]`,
		`"durationMs":1500,"usage":{"prompt":55,"completion":63,"total":118},"cost":0.0123`, mine) +
		`,"b":` + side("what-if", "active", `[]`,
		`[{"turn":1,"step":2,"durationMs":900,"usage":{"prompt":54,"completion":61,"total":115}},{"turn":2,"step":1,"durationMs":1,"usage":{"prompt":0,"completion":0,"total":0}}]`,
		`"durationMs":900,"usage":{"prompt":54,"completion":61,"total":115},"unpriced":["odd"]`, theirs) +
		`,"common":3,"forkedFrom":{"sessionId":"s","sequence":22,"record":23},"patch":[{"op":"replace","path":"/asked","value":2},{"op":"remove","path":"/old"}]}`
	var asked []string
	for name, args := range map[string][]string{
		"plain": {"compare", "s@24", "what-if"}, "narrow": {"compare", "s@24", "what-if", "--width", "1"},
		"colored": {"compare", "s@24", "what-if", "--color", "always"},
	} {
		asked = nil
		out, err := told(t, answering(&asked, map[string]string{"/compare": answer, "/sessions/s/state": stateBefore}), args...)
		require.NoError(t, err, name)
		golden(t, "compare/"+name+".txt", out)
		require.Equal(t, []string{"/compare?a=s&aAt=24&b=what-if", "/sessions/s/state?at=24"}, asked)
	}
	asked = nil
	out, err := told(t, answering(&asked, map[string]string{"/compare": answer}), "diff", "s@24", "what-if@", "--json")
	require.NoError(t, err)
	require.Equal(t, answer+"\n", out, "as the daemon answers")
	require.Equal(t, []string{"/compare?a=s&aAt=24&b=what-if"}, asked)
}

// COLUMNS is the shell's: it says how wide the terminal is, or it counts for nothing.
func TestCompareColumns(t *testing.T) {
	p := &flags.Process{Stdout: new(bytes.Buffer)}
	for columns, want := range map[string]int{"": plainWidth, "wide": plainWidth, "-5": plainWidth, "0": plainWidth, "7": minWidth, "90": 90} {
		t.Setenv("COLUMNS", columns)
		var c cli
		parser, err := newParser(&c)
		require.NoError(t, err)
		_, err = parser.Parse([]string{"compare", "a", "b"})
		require.NoError(t, err, "COLUMNS=%q", columns)
		require.Equal(t, want, c.Compare.width(p), "COLUMNS=%q", columns)
		require.Equal(t, 60, widthFlag{Width: 60}.width(p), "the flag says more")
	}
}

// No line is wider than it may be, and nothing but spaces is lost.
func TestWrap(t *testing.T) {
	for _, text := range []string{
		"", " ", "short", "several words that are wrapped", strings.Repeat("x", 50), "漢字漢字漢字漢字漢字漢字", "  indented text, and words", "👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀",
	} {
		for width := 2; width < 20; width++ {
			var all string
			for _, line := range wrap([]terminal.Line{{Text: text}}, width) {
				require.LessOrEqual(t, columns(line.Text), width, "%q at %d", text, width)
				all += line.Text
			}
			require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(all, " ", ""))
		}
	}
}
