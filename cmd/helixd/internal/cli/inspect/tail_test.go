package inspect

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

// golden compares an output with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateGolden {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test ./cmd/helixd/internal/cli/inspect -run %s -update", t.Name())
	require.Equal(t, string(want), got, "go test ./cmd/helixd/internal/cli/inspect -run %s -update", t.Name())
}

// told runs a command against a daemon that answers with answer.
func told(t *testing.T, answer func(http.ResponseWriter, *http.Request), args ...string) (stdout string, err error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(answer))
	defer srv.Close()
	var out bytes.Buffer
	err = clitest.RunIn[Commands](t, &flags.Process{Ctx: t.Context(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out},
		append(args, "--server", srv.URL)...)
	return out.String(), err
}

// streamed is a stream of chunks, whose sequences are 10, 20 and so on, and
// its end.
func streamed(t *testing.T, end string, chunks ...eventlog.Chunk) string {
	t.Helper()
	var b strings.Builder
	for i, c := range chunks {
		raw, err := eventlog.EncodeChunk(c)
		require.NoError(t, err)
		data, err := json.Marshal(map[string]any{"type": "chunk", "chunk": json.RawMessage(raw), "sequence": 10 * (i + 1)})
		require.NoError(t, err)
		b.WriteString("event: chunk\ndata: " + string(data) + "\n\n: heartbeat\n\n")
	}
	return b.String() + "event: end\ndata: " + end + "\n\n"
}

func sendStream(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(text))
	}
}

// story has each kind of chunk.
func story() []eventlog.Chunk {
	root := eventlog.Base{AgentID: "s", AgentType: "boss", Timestamp: 1, Step: 1}
	child := eventlog.Base{AgentID: "s-sub-c3", AgentType: "writer", Timestamp: 1, Step: 1}
	other := eventlog.Base{AgentID: "s-sub-c4", AgentType: "writer", Timestamp: 1, Step: 1}
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	return []eventlog.Chunk{
		&eventlog.RunResumed{RunID: "r", FromCheckpointID: new("cp-0"), Mode: "continue", Base: root},
		&eventlog.StepStart{Base: root},
		&eventlog.Thinking{Content: "I had ", Base: root},
		&eventlog.Thinking{Content: "better look.", Base: root},
		&eventlog.Thinking{Content: "I had better look.", IsComplete: true, Base: root},
		&eventlog.Thinking{Content: "A second thought, whole.", IsComplete: true, Base: root},
		&eventlog.TextDelta{Delta: "Two lines:\n", Base: root},
		&eventlog.TextDelta{Delta: "\n\tthe \x1b[31mthird\u009b2J is \u202ehere", Base: root},
		&eventlog.TextDelta{Delta: ", 👩‍🚀.\n\n", Base: root},
		&eventlog.SourceURL{SourceID: "1", URL: "https://example.com", Title: new("An example"), Base: root},
		&eventlog.SourceDocument{SourceID: "2", MediaType: "application/pdf", Title: "Doc", Filename: new("d.pdf"), Base: root},
		&eventlog.File{URL: "data:image/png;base64," + strings.Repeat("A", 200), MediaType: "image/png", Base: root},
		&eventlog.ToolArgStreamStart{ToolCallID: "c1", ToolName: "look", Base: root},
		&eventlog.ToolArgStreamDelta{ToolCallID: "c1", Delta: `{"city":`, Base: root},
		&eventlog.ToolArgStreamStart{ToolCallID: "c2", ToolName: "look", Base: root},
		&eventlog.ToolArgStreamDelta{ToolCallID: "c2", Delta: `{"city":"Oslo"}`, Base: root},
		&eventlog.ToolArgStreamDelta{ToolCallID: "c1", Delta: `"Rome"}`, Base: root},
		&eventlog.ToolArgStreamEnd{ToolCallID: "c1", Base: root},
		&eventlog.ToolArgStreamEnd{ToolCallID: "c2", Base: root},
		&eventlog.ToolStart{ToolCallID: "c1", ToolName: "look", Arguments: raw(`{"city":"Rome"}`), Base: root},
		&eventlog.ToolStart{ToolCallID: "c2", ToolName: "look", Arguments: raw(`{"city":"Oslo"}`), Base: root},
		&eventlog.CustomEvent{EventName: "progress", Data: raw(`{"half":true}`), Base: root},
		&eventlog.StatePatch{Patches: []eventlog.PatchOp{
			{Op: "add", Path: "/seen/Rome", Value: raw(`"sun"`)}, {Op: "move", From: new("/a"), Path: "/b"},
		}, Base: root},
		&eventlog.ToolEnd{ToolCallID: "c1", ToolName: "look", Result: raw(`{"sky":"sun\u009b"}`), Base: root},
		&eventlog.ToolEnd{ToolCallID: "c2", ToolName: "look", Result: raw(`null`), Error: new("no station\nthere"), ErrorCode: new("tool_error"), Base: root},
		&eventlog.ToolInputError{ToolCallID: "c9", ToolName: "look", Error: "city is required", Base: root},
		&eventlog.ToolOutputError{ToolCallID: "c9", ToolName: "look", Error: "gone", Base: root},
		&eventlog.ToolApprovalRequest{ToolCallID: "c5", ToolName: "pay", ApprovalID: "r::c5", Input: raw(`{"euros":9}`), Base: root},
		&eventlog.RunPaused{RunID: "r", Reason: "client_tool", PendingToolName: new("pay"), PendingToolCallID: new("c5"), Base: root},
		&eventlog.ToolApprovalResponse{ToolCallID: "c5", ToolName: "pay", ApprovalID: "r::c5", Approved: true, Base: root},
		&eventlog.ToolStart{ToolCallID: "c5", ToolName: "pay", Arguments: raw(`{"euros":9}`), Base: root},
		&eventlog.ToolApprovalResponse{ToolCallID: "c6", ToolName: "pay", ApprovalID: "r::c6", Reason: new("Too much."), Base: root},
		&eventlog.SubAgentStart{SubAgentType: "writer", SubSessionID: "s-sub-c3", CallID: "c3", Base: root},
		&eventlog.SubAgentStart{SubAgentType: "writer", SubSessionID: "s-sub-c4", CallID: "c4", Base: root},
		&eventlog.TextDelta{Delta: "One ", Base: child},
		&eventlog.TextDelta{Delta: "Two ", Base: other},
		&eventlog.TextDelta{Delta: "three.", Base: other},
		&eventlog.SubAgentEnd{SubAgentType: "writer", SubSessionID: "s-sub-c3", CallID: "c3", Result: raw(`{"words":1}`), Base: root},
		&eventlog.StepEnd{FinishReason: new(eventlog.FinishToolCalls), Usage: &eventlog.StepUsage{InputTokens: 54, OutputTokens: 61}, Base: root},
		&eventlog.StepCommitted{RunID: "r", StepID: "turn-1-step-1", CheckpointID: "cp-1", Base: root},
		&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp-1", StepCount: 1, Base: root},
		&eventlog.TextDelta{Delta: "half an ans", Base: root},
		&eventlog.StreamResync{CheckpointID: "cp-1", StepCount: 1, MessageCount: 4, FromSequence: 410, Reason: eventlog.ResyncCrashRecovery, Base: root},
		&eventlog.StepDiscarded{RunID: "r", StepID: "turn-1-step-2", Reason: "superseded", Base: root},
		&eventlog.ExecutorSuperseded{Reason: new("another node"), Base: root},
		&eventlog.Error{Error: "the model is \x1b]0;overloaded", Code: new("overloaded"), Recoverable: true, Base: root},
		&eventlog.RunInterrupted{RunID: "r", Reason: new("enough"), Base: root},
		&eventlog.Output{Output: raw(`{"long":"` + strings.Repeat("x", 500) + `"}`), Base: root},
		&eventlog.SuspensionMarker{Kind: eventlog.SuspendedClientTool, Payload: raw(`{}`), Base: root},
	}
}

// A stream is printed in words, in which nothing controls the terminal.
func TestTranscript(t *testing.T) {
	stream := streamed(t, `{"type":"end","status":"paused"}`, story()...)
	for name, args := range map[string][]string{
		"plain": {"tail", "s"}, "colored": {"tail", "s", "--color", "always"}, "lines": {"tail", "s", "--lines"},
	} {
		out, err := told(t, sendStream(stream), args...)
		require.NoError(t, err)
		golden(t, "tail/"+name+".txt", out)
		shown := out
		if name == "colored" {
			shown = strings.ReplaceAll(out, "\x1b", "")
		}
		require.Equal(t, terminal.Readable(shown), shown, "%s: the terminal would obey it", name)
		replayed, err := told(t, sendStream(stream), append([]string{"replay"}, args[1:]...)...)
		require.NoError(t, err)
		require.Equal(t, out, replayed, "a replay is printed as the stream was")
	}
	out, err := told(t, sendStream(stream), "tail", "s", "--json")
	require.NoError(t, err)
	var data strings.Builder
	for line := range strings.Lines(stream) {
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data.WriteString(text)
		}
	}
	require.Equal(t, data.String(), out, "as the daemon sends it")
	out, err = told(t, sendStream(stream), "replay", "s", "--sse")
	require.NoError(t, err)
	require.Equal(t, stream, out)
}

func TestTranscriptOfFailures(t *testing.T) {
	out, err := told(t, sendStream(streamed(t, `{"type":"error","error":"no\u001b more"}`)), "tail", "s")
	require.NoError(t, err)
	require.Equal(t, `failed: "no\x1b more"`+"\n", out)

	whole := streamed(t, `{}`, &eventlog.TextDelta{Delta: "half", Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1}})
	cut, _, _ := strings.Cut(whole, "event: end")
	out, err = told(t, sendStream(cut), "tail", "s")
	require.ErrorContains(t, err, "the connection was lost; resume with --from 10")
	require.Equal(t, "      10  text       half\n", out, "the next output has its own line")
	for _, args := range [][]string{{"tail", "s", "--from", "7"}, {"tail", "s@7"}, {"replay", "s@7"}} {
		_, err = told(t, sendStream(": heartbeat\n\n"), args...)
		require.EqualError(t, err, "the connection was lost; resume with --from 7", "nothing came after it")
	}

	out, err = told(t, sendStream("data: {\"type\":\"chunk\",\"chunk\":{\"type\":\"from\\u009bthe future\",\"x\":1},\"sequence\":3}\n\n"+whole), "tail", "s")
	require.NoError(t, err)
	require.Contains(t, out, `{"type":"from\u009bthe future","x":1}`)

	out, err = told(t, sendStream(streamed(t, `{"type":"end","status":"active"}`)), "replay", "s", "--to", "3")
	require.NoError(t, err)
	require.Equal(t, "continues\n", out)

	_, err = told(t, sendStream("data: nonsense\n\n"), "tail", "s")
	require.ErrorContains(t, err, "an event is not JSON")
}
