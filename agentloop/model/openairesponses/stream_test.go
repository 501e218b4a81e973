package openairesponses_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/fact"
)

func summary(part int, delta string) string {
	raw, _ := json.Marshal(map[string]any{
		"type": "response.reasoning_summary_text.delta", "item_id": "i", "output_index": 0, "summary_index": part, "delta": delta,
	})
	return string(raw)
}

func TestReasoningKeepsWhatIsEncrypted(t *testing.T) {
	got, c := ask(t,
		added(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"not yet whole","summary":[]}`),
		on("reasoning_summary_part.added", 0, `"summary_index":0,"part":{"type":"summary_text","text":""}`),
		summary(0, "First "), summary(0, "this."),
		on("reasoning_summary_text.done", 0, `"summary_index":0,"text":"First this."`),
		on("reasoning_summary_part.added", 0, `"summary_index":1,"part":{"type":"summary_text","text":""}`),
		summary(1, "Then that."),
		done(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"gAAA+/==","summary":[{"type":"summary_text","text":"First this."},{"type":"summary_text","text":"Then that."}]}`),
		// without a summary
		added(1, `{"type":"reasoning","id":"rs_2","summary":[]}`),
		done(1, `{"type":"reasoning","id":"rs_2","encrypted_content":"gBBB","summary":[]}`),
		// with nothing to send back
		added(2, `{"type":"reasoning","id":"rs_3","summary":[]}`),
		on("reasoning_text.delta", 2, `"content_index":0,"delta":"In the open."`),
		done(2, `{"type":"reasoning","id":"rs_3","summary":[]}`),
		added(3, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`),
		text(3, "Hel"), text(3, "lo ☃"),
		on("output_text.done", 3, `"content_index":0,"text":"Hello ☃"`),
		done(3, `{"type":"message","id":"msg_1","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"Hello ☃","annotations":[]}]}`),
	)
	require.Equal(t, []model.Event{
		model.ReasoningDelta{Text: "First "},
		model.ReasoningDelta{Text: "this."},
		model.PartEnd{},
		model.ReasoningDelta{Text: "Then that."},
		model.PartEnd{Data: json.RawMessage(`{"provider":"openai-responses","itemId":"rs_1","encrypted":"gAAA+/=="}`)},
		model.PartEnd{Data: json.RawMessage(`{"provider":"openai-responses","itemId":"rs_2","encrypted":"gBBB"}`)},
		model.ReasoningDelta{Text: "In the open."},
		model.PartEnd{},
		model.TextDelta{Text: "Hel"},
		model.TextDelta{Text: "lo ☃"},
		model.PartEnd{Data: json.RawMessage(`{"provider":"openai-responses","phase":"final_answer"}`)},
	}, c.Events)
	require.Equal(t, model.Answer{
		Model: "m-1", StopReason: fact.StopEndTurn,
		Usage: fact.TokenUsage{Prompt: 3, Completion: 4, Reasoning: 1, Cached: 2, Total: 7},
	}, got)
}

func TestParallelCallsWithInterleavedArguments(t *testing.T) {
	arguments := func(index int, delta string) string {
		raw, _ := json.Marshal(delta)
		return on("function_call_arguments.delta", index, `"delta":`+string(raw))
	}
	got, c := ask(t,
		added(0, `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"one","arguments":"","status":"in_progress"}`),
		added(1, `{"type":"function_call","id":"fc_2","call_id":"call_b","name":"two","arguments":"","status":"in_progress"}`),
		arguments(0, `{"x":`), arguments(1, `{"y":`), arguments(0, `1}`), arguments(1, `2}`),
		on("function_call_arguments.done", 1, `"arguments":"{\"y\":2}"`),
		done(1, `{"type":"function_call","id":"fc_2","call_id":"call_b","name":"two","arguments":"{\"y\":2}"}`),
		done(0, `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"one","arguments":"{\"x\":1}"}`),
		// whole, at the end or without a beginning
		added(2, `{"type":"function_call","id":"fc_3","call_id":"call_c","name":"three","arguments":""}`),
		done(2, `{"type":"function_call","id":"fc_3","call_id":"call_c","name":"three","arguments":"[3]"}`),
		done(3, `{"type":"function_call","id":"fc_4","call_id":"call_d","name":"four","arguments":""}`),
	)
	require.Equal(t, modeltest.Calls(
		"call_a", "one", `{"x":1}`, "call_b", "two", `{"y":2}`, "call_c", "three", `[3]`, "call_d", "four", ""), c.Calls)
	require.Equal(t, fact.StopToolUse, got.StopReason)
}

func TestAnnotationsAreSourcesBehindTheirText(t *testing.T) {
	const annotation = `{"type":"url_citation","url":"https://example.com/g?a=1&b","title":"Grass","start_index":0,"end_index":3}`
	_, c := ask(t,
		added(0, `{"type":"message","id":"msg_1","role":"assistant","content":[]}`),
		text(0, "Grass is "),
		on("output_text.annotation.added", 0, `"content_index":0,"annotation_index":0,"annotation":`+annotation),
		text(0, "green."),
		done(0, `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Grass is green.","annotations":[`+annotation+`,`+
			`{"type":"file_citation","file_id":"file-1","filename":"colours.txt","index":3},`+
			`{"type":"file_citation","file_id":"file-1","filename":"colours.txt","index":9},`+
			`{"type":"container_file_citation","container_id":"c","file_id":"file-2","filename":"plot.png","start_index":0,"end_index":0},`+
			`{"type":"file_path","file_id":"file-3","index":0},{"type":"of the future"}]}]}`),
	)
	require.Equal(t, []model.Event{
		model.TextDelta{Text: "Grass is "},
		model.TextDelta{Text: "green."},
		model.PartEnd{},
		model.Source{URL: "https://example.com/g?a=1&b", Title: "Grass"},
		model.Source{MediaType: "text/plain", Title: "colours.txt", Filename: "colours.txt"},
		model.Source{MediaType: "text/plain", Title: "plot.png", Filename: "plot.png"},
		model.Source{MediaType: "application/octet-stream", Title: "file-3"},
	}, c.Events)
}

func TestGeneratedImagesAreFiles(t *testing.T) {
	_, c := ask(t,
		added(0, `{"type":"image_generation_call","id":"ig_1","status":"in_progress"}`),
		on("image_generation_call.partial_image", 0, `"partial_image_index":0,"partial_image_b64":"AA=="`),
		done(0, `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVBO","output_format":"webp"}`),
		done(1, `{"type":"image_generation_call","id":"ig_2","status":"completed","result":"AAAA"}`),
		done(2, `{"type":"image_generation_call","id":"ig_3","status":"failed","result":null}`),
	)
	require.Equal(t, []model.File{
		{
			URL: "data:image/webp;base64,iVBO", MediaType: "image/webp",
			Data: json.RawMessage(`{"provider":"openai-responses","itemId":"ig_1"}`),
		},
		{
			URL: "data:image/png;base64,AAAA", MediaType: "image/png",
			Data: json.RawMessage(`{"provider":"openai-responses","itemId":"ig_2"}`),
		},
	}, c.Files)
}

func TestWhatComesWholeIsTakenWhole(t *testing.T) {
	_, c := ask(t,
		done(0, `{"type":"reasoning","id":"rs_1","encrypted_content":"g","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`),
		done(1, `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"All."}]}`),
		done(2, `{"type":"message","id":"msg_2","role":"assistant","phase":"commentary","content":[]}`),
	)
	require.Equal(t, []model.Event{
		model.ReasoningDelta{Text: "a"},
		model.PartEnd{},
		model.ReasoningDelta{Text: "b"},
		model.PartEnd{Data: json.RawMessage(`{"provider":"openai-responses","itemId":"rs_1","encrypted":"g"}`)},
		model.TextDelta{Text: "All."},
		model.PartEnd{},
	}, c.Events)
}

func TestOtherTypesThanDocumented(t *testing.T) {
	_, c := ask(t,
		done(0, `{"type":"message","id":"msg_1","role":"assistant","content":"All."}`),
		done(1, `{"type":"function_call","id":"fc_1","call_id":"a","name":"f","arguments":{"path":"x"}}`),
		added(2, `{"type":"function_call","id":"fc_2","call_id":"b","name":"g","arguments":null}`),
		on("function_call_arguments.delta", 2, `"delta":{"n":1}`),
		done(2, `{"type":"function_call","id":"fc_2","call_id":"b","name":"g","arguments":{"n":1}}`),
	)
	require.Equal(t, "All.", c.Text)
	require.Equal(t, modeltest.Calls("a", "f", `{"path":"x"}`, "b", "g", `{"n":1}`), c.Calls)
}

func TestKindsOfTheFutureAreSkipped(t *testing.T) {
	_, c := ask(t,
		on("novelty.delta", 0, `"delta":{"odd":1}`),
		added(0, `{"type":"web_search_call","id":"ws_1","status":"in_progress"}`),
		on("web_search_call.searching", 0, `"x":1`),
		done(0, `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`),
		added(1, `{"type":"novel_item","novel":{}}`), done(1, `{"type":"novel_item","novel":{}}`),
		text(7, "Hi"),
		on("function_call_arguments.delta", 9, `"delta":"{}"`),
		`[DONE]`,
	)
	require.Equal(t, []model.Event{model.TextDelta{Text: "Hi"}}, c.Events)
}
