package agui

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// input is a RunAgentInput.
type input struct {
	thread, run  string
	kept         kept
	messages     []message
	tools        []fact.ClientTool
	instructions string          // the context
	state        json.RawMessage // an object, or nil
	resume       []decision
}

// message is a message that a client sends: of the user, the system, the assistant or a tool.
type message struct {
	id, role string
	in       agentloop.Input
	result   engine.Submission // of a tool
	called   []fact.TurnPart   // of the assistant
}

// decision answers an interrupt.
type decision struct {
	interrupt string
	approved  bool
	reason    string
}

// inputOf reads a RunAgentInput. Members that the protocol does not know are ignored.
func inputOf(o *web.Object) (in input, err error) {
	o.DropNulls()
	in = input{thread: o.Word("threadId"), run: o.Word("runId"), kept: kept{Protocol: protocolName}}
	if *o.Err == nil {
		*o.Err = eventlog.ValidateClientSessionID(in.thread)
	}
	if *o.Err == nil && eventlog.ValidateID(in.run) != nil {
		o.Fail("runId", fmt.Sprintf("must be an id of at most %d bytes", eventlog.MaxID))
	}
	in.kept.Version, in.kept.Parent = o.OptText("protocolVersion"), o.OptText("parentRunId")
	if in.state = o.Members["state"]; len(in.state) > 0 && in.state[0] != '{' {
		o.Fail("state", "must be an object")
	}
	for _, t := range o.Objects("tools") {
		t.DropNulls()
		tool := fact.ClientTool{Name: t.Word("name"), Description: t.OptText("description")}
		if raw := t.Members["parameters"]; len(raw) > 0 && string(raw) != `""` {
			tool.InputSchema = t.OptObject("parameters")
		}
		in.tools = append(in.tools, tool)
	}
	var context strings.Builder
	for _, c := range o.Objects("context") {
		fmt.Fprintf(&context, "%s: %s\n", c.Text("description"), c.Text("value"))
	}
	in.instructions = strings.TrimSpace(context.String())
	for i, m := range o.Objects("messages") {
		m.DropNulls()
		if err := in.message(m, fmt.Sprintf("messages[%d]", i)); err != nil {
			return in, err
		}
	}
	decided := map[string]bool{}
	for i, d := range o.Objects("resume") {
		d.DropNulls()
		path := fmt.Sprintf("resume[%d]", i)
		if err := in.decision(d, path); err != nil {
			return in, err
		}
		id := in.resume[i].interrupt
		if decided[id] {
			return in, invalid("%s.interruptId: %q is given twice", path, id)
		}
		decided[id] = true
	}
	return in, *o.Err
}

func (in *input) message(o *web.Object, path string) error {
	m := message{id: o.Word("id"), role: o.Word("role")}
	if *o.Err == nil && eventlog.ValidateID(m.id) != nil {
		o.Fail("id", fmt.Sprintf("must be an id of at most %d bytes", eventlog.MaxID))
	}
	switch m.role {
	case "user":
		text, files, err := contentOf(o, path)
		if err != nil {
			return err
		}
		m.in = agentloop.Input{Content: text, Files: files, MessageID: m.id}
	case "system", "developer":
		m.in = agentloop.Input{Added: &fact.MessageAdded{Role: fact.AddedSystem, Content: o.Text("content"), MessageID: m.id}}
	case "assistant":
		m.readAnswer(o)
	case "tool":
		text, files, err := contentOf(o, path)
		if err != nil {
			return err
		}
		if len(files) > 0 {
			return invalid("%s.content: the result of a tool must be text", path)
		}
		m.result = engine.Submission{ToolCallID: o.Word("toolCallId"), Kind: fact.SubmitClientResult, MessageID: m.id}
		if m.result.Error = o.OptText("error"); m.result.Error == "" {
			m.result.Result = resultOf(text)
		}
	case "reasoning", "activity": // the session has what of them counts
	default:
		if *o.Err == nil {
			return invalid("%s.role: must be user, assistant, tool, system, developer, reasoning or activity", path)
		}
	}
	in.messages = append(in.messages, m)
	return *o.Err
}

// readAnswer reads a message of the assistant.
func (m *message) readAnswer(o *web.Object) {
	if text := o.OptText("content"); text != "" {
		m.called = append(m.called, fact.TurnPart{Text: text})
	}
	for _, c := range o.Objects("toolCalls") {
		call := c.Nested("function")
		if *o.Err != nil {
			return
		}
		m.called = append(m.called, fact.TurnPart{ToolCall: &fact.ToolCall{
			ID: c.Word("id"), Name: call.Word("name"), Arguments: web.JSONOf(call.OptText("arguments")),
		}})
	}
	m.in = agentloop.Input{Added: &fact.MessageAdded{Role: fact.AddedAssistant, Parts: m.called, MessageID: m.id}}
}

// resultOf returns the result of a tool: an object or an array, which clients send as a text,
// or the text.
func resultOf(text string) json.RawMessage {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return web.JSONOf(text)
	}
	raw, _ := eventlog.Marshal(text)
	return raw
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
		case "text":
			text += p.Text("text")
		case "image", "audio", "video", "document":
			source := p.Nested("source")
			if source.Text("type") != "data" && *o.Err == nil {
				return "", nil, invalid("%s.source.type: must be data: the server fetches no files", at)
			}
			files = append(files, fileOf(source, "value", "mimeType"))
		case "binary": // of earlier versions
			if !p.Has("data") {
				return "", nil, invalid("%s.data: is required: the server fetches no files", at)
			}
			f := fileOf(p, "data", "mimeType")
			f.Filename = p.OptText("filename")
			files = append(files, f)
		default:
			if *o.Err == nil {
				return "", nil, invalid("%s.type: must be text, image, audio, video or document", at)
			}
		}
	}
	return text, files, *o.Err
}

func fileOf(o *web.Object, data, media string) fact.MessageFile {
	value := o.Word(data)
	if _, err := base64.StdEncoding.DecodeString(value); err != nil {
		o.Fail(data, "must be base64")
	}
	f := fact.MessageFile{MediaType: o.Word(media)}
	f.Data = "data:" + f.MediaType + ";base64," + value
	return f
}

// decision reads an entry of resume. What the client has cancelled is not approved.
func (in *input) decision(o *web.Object, path string) error {
	d := decision{interrupt: o.Word("interruptId")}
	switch status := o.Text("status"); {
	case *o.Err != nil:
		return *o.Err
	case status == "cancelled":
		d.reason = "cancelled"
	case status != "resolved":
		return invalid("%s.status: must be resolved or cancelled", path)
	case string(o.OrNull("payload")) == "true":
		d.approved = true
	case string(o.OrNull("payload")) == "false":
	default:
		answer := o.Nested("payload")
		if answer.Has("editedArgs") {
			return invalid("%s.payload.editedArgs: a call can be approved or not, but not changed", path)
		}
		d.approved, d.reason = answer.Flag("approved"), answer.OptText("reason")
	}
	in.resume = append(in.resume, d)
	return *o.Err
}
