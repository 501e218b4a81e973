package responses

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// inputOf reads a text, or a list of items.
func inputOf(o *web.Object, name string) (input, error) {
	raw := o.Members[name]
	switch {
	case raw == nil:
		return input{}, nil
	case raw[0] == '"':
		text := o.Word(name)
		return input{messages: []agentloop.Input{{Content: text}}}, *o.Err
	}
	in := &reader{called: map[string]string{}}
	for i, item := range o.Objects(name) {
		item.DropNulls()
		if err := in.item(item, fmt.Sprintf("%s[%d]", name, i)); err != nil {
			return input{}, err
		}
		if *o.Err != nil {
			return input{}, *o.Err
		}
	}
	if *o.Err != nil {
		return input{}, *o.Err
	}
	for id := range in.called {
		return input{}, noOutput(name, id)
	}
	return in.input, nil
}

func noOutput(param, call string) *Problem {
	return &Problem{Status: 400, Message: fmt.Sprintf("No tool output found for function call %s.", call), Param: param, Code: "missing_tool_output"}
}

func noCall(param, call string) *Problem {
	return &Problem{Status: 400, Message: fmt.Sprintf("No tool call found for function call output with call_id %s.", call), Param: param, Code: "tool_call_not_found"}
}

// reader reads the items of an input.
type reader struct {
	input
	// called are the names of calls among the items that have no output yet, by call id.
	called map[string]string
}

func (in *reader) item(o *web.Object, path string) error {
	kind := o.OptText("type")
	if kind == "" && o.Has("role") {
		kind = "message"
	}
	switch kind {
	case "message":
		return in.message(o, path)
	case "function_call":
		id, name := o.Word("call_id"), o.Word("name")
		in.called[id] = name
		in.part(fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: name, Arguments: web.JSONOf(o.OptText("arguments"))}})
	case "function_call_output":
		return in.output(o, path)
	case "reasoning":
		if text := reasoningOf(o); text != "" {
			in.part(fact.TurnPart{Reasoning: text})
		}
	case "mcp_call": // the server has run it
		id, name := o.Word("id"), o.Word("name")
		in.part(fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: name, Arguments: web.JSONOf(o.OptText("arguments"))}})
		in.result(id, name, o.OptText("output"), o.Has("error"))
	case "mcp_approval_request", "item_reference": // the session has what they name
	case "mcp_approval_response":
		in.answers = append(in.answers, answer{
			approval: o.Word("approval_request_id"), param: path,
			Submission: engine.Submission{Kind: fact.SubmitApproval, Approved: o.Flag("approve"), Reason: o.OptText("reason")},
		})
	default:
		return unsupported(path+".type", fmt.Sprintf("items of type '%s' are not supported.", kind))
	}
	return nil
}

// part adds a part to the assistant's message.
func (in *reader) part(p fact.TurnPart) {
	if n := len(in.messages); n > 0 && in.messages[n-1].Added != nil && in.messages[n-1].Added.Role == fact.AddedAssistant {
		m := in.messages[n-1].Added
		m.Parts = append(m.Parts, p)
		return
	}
	in.messages = append(in.messages, agentloop.Input{Added: &fact.MessageAdded{Role: fact.AddedAssistant, Parts: []fact.TurnPart{p}}})
}

func (in *reader) result(call, name, output string, failed bool) {
	m := &fact.MessageAdded{Role: fact.AddedTool, ToolCallID: call, ToolName: name}
	if failed {
		m.Error = "the call failed"
	} else {
		m.Result, _ = eventlog.Marshal(output)
	}
	in.messages = append(in.messages, agentloop.Input{Added: m})
}

// output adds the output of a call that is among the items before it, or else waits.
func (in *reader) output(o *web.Object, path string) error {
	id := o.Word("call_id")
	text, err := outputText(o, path)
	if err != nil {
		return err
	}
	if name, here := in.called[id]; here {
		delete(in.called, id)
		in.result(id, name, text, false)
		return nil
	}
	result, _ := eventlog.Marshal(text)
	in.answers = append(in.answers, answer{param: path, Submission: engine.Submission{ToolCallID: id, Kind: fact.SubmitClientResult, Result: result}})
	return nil
}

// outputText returns the output of a call: a text, or the texts of a list.
func outputText(o *web.Object, path string) (string, error) {
	if raw := o.Members["output"]; len(raw) == 0 || raw[0] != '[' {
		return o.Text("output"), nil
	}
	var text strings.Builder
	for i, part := range o.Objects("output") {
		if kind := part.Text("type"); kind != "input_text" && *o.Err == nil {
			return "", unsupported(fmt.Sprintf("%s.output[%d].type", path, i), "an output has parts of type input_text only.")
		}
		text.WriteString(part.Text("text"))
	}
	return text.String(), nil
}

func reasoningOf(o *web.Object) string {
	var text strings.Builder
	for _, name := range []string{"summary", "content"} {
		for _, part := range o.Objects(name) {
			text.WriteString(part.Loose("text"))
		}
	}
	return text.String()
}

// message adds a message. Messages of the roles system and developer follow the agent's own
// system prompt.
func (in *reader) message(o *web.Object, path string) error {
	role := o.Word("role")
	if *o.Err != nil {
		return *o.Err
	}
	content, files, err := contentOf(o, path)
	if err = cmp.Or(err, *o.Err); err != nil {
		return err
	}
	switch role {
	case "user":
		if content == "" && len(files) == 0 {
			return invalid(path+".content", "a message must not be empty.")
		}
		in.messages = append(in.messages, agentloop.Input{Content: content, Files: files})
	case "assistant":
		if content != "" {
			in.part(fact.TurnPart{Text: content})
		}
	case "system", "developer":
		in.messages = append(in.messages, agentloop.Input{Added: &fact.MessageAdded{Role: fact.AddedSystem, Content: content}})
	default:
		return invalid(path+".role", "role must be user, assistant, system or developer.")
	}
	if len(files) > 0 && role != "user" {
		return unsupported(path+".content", "only messages of users have files.")
	}
	return nil
}

// contentOf returns the text and the files of a message.
func contentOf(o *web.Object, path string) (text string, files []fact.MessageFile, err error) {
	if raw := o.Members["content"]; len(raw) == 0 || raw[0] != '[' {
		return o.Text("content"), nil, nil
	}
	for i, p := range o.Objects("content") {
		p.DropNulls()
		at := fmt.Sprintf("%s.content[%d]", path, i)
		switch kind := p.Text("type"); kind {
		case "input_text", "output_text", "text":
			text += p.Text("text")
		case "refusal":
			text += p.Text("refusal")
		case "input_image":
			url := p.OptText("image_url")
			media, ok := mediaOf(url)
			if !ok {
				return "", nil, unsupported(at+".image_url", "an image must be a data URL with its base64-encoded data.")
			}
			files = append(files, fact.MessageFile{Data: url, MediaType: media})
		case "input_file":
			f := fact.MessageFile{Data: p.OptText("file_data"), Filename: p.OptText("filename")}
			var ok bool
			if f.MediaType, ok = mediaOf(f.Data); !ok {
				return "", nil, unsupported(at+".file_data", "a file must have file_data, a data URL with its base64-encoded data.")
			}
			files = append(files, f)
		default:
			if *o.Err == nil {
				return "", nil, unsupported(at+".type", fmt.Sprintf("content of type '%s' is not supported.", kind))
			}
		}
	}
	return text, files, nil
}

// mediaOf returns the media type of a base64-encoded data URL.
func mediaOf(url string) (media string, ok bool) {
	head, data, ok := strings.Cut(url, ",")
	media, isData := strings.CutPrefix(head, "data:")
	media, encoded := strings.CutSuffix(media, ";base64")
	if !ok || !isData || !encoded || media == "" {
		return "", false
	}
	_, err := base64.StdEncoding.DecodeString(data)
	return media, err == nil
}
