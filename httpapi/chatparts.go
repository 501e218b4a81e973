package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// userMessage returns what a UI message of a user says: its text parts, one
// behind the other, and its file parts. Parts of other types are ignored. The
// request's metadata beats the message's own.
func (o *object) userMessage(request json.RawMessage) (agentloop.Input, error) {
	in := agentloop.Input{Metadata: o.mergedMetadata(request)}
	if id := o.loose("id"); eventlog.ValidateID(id) == nil {
		in.MessageID = id
	}
	if !o.has("parts") {
		o.fail("parts", "is required")
	}
	for _, p := range o.objects("parts") {
		switch p.text("type") {
		case "text":
			in.Content += p.text("text")
		case "file":
			file := eventlog.MessageFile{
				Data: p.text("url"), MediaType: p.word("mediaType"), Filename: p.optText("filename"),
			}
			if !strings.HasPrefix(file.Data, "data:") {
				p.fail("url", "must be a data URL")
			}
			in.Files = append(in.Files, file)
		}
	}
	if in.Content == "" && len(in.Files) == 0 {
		o.fail("parts", "must hold text or a file")
	}
	return in, *o.err
}

// mergedMetadata returns the message's metadata with the request's over it,
// nil if there is neither. What says how helixd treats a message is not the
// client's to set.
func (o *object) mergedMetadata(request json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	for _, raw := range []json.RawMessage{o.optMetadata(), request} {
		if raw != nil {
			_ = json.Unmarshal(raw, &all) // an object; into the same map
		}
	}
	for _, name := range []string{projector.OwnMetadata, hiddenMetadata} {
		if all[name] != nil {
			o.fail("metadata."+name, "is reserved")
		}
	}
	if all == nil {
		return nil
	}
	merged, err := marshal(all)
	if err != nil {
		o.fail("metadata", "must be an object")
	}
	return merged
}

// hiddenMetadata keeps a message out of the conversation that users see: the
// client that sends it would lose its place.
const hiddenMetadata = "hidden"

// optMetadata is the member "metadata", which clients may also send as null.
func (o *object) optMetadata() json.RawMessage {
	if string(o.members["metadata"]) == "null" {
		return nil
	}
	return o.optObject("metadata")
}

// chatAnswer is a client's answer to a tool call, from the call's part.
type chatAnswer struct {
	submission engine.Submission // without its session
	problem    error             // matters only if the call waits
}

// answers returns what the tool parts of an assistant's message answer. Most of
// it is history: outputs of tools that have run here look the same.
func (o *object) answers() []chatAnswer {
	var all []chatAnswer
	for _, p := range o.alone().objects("parts") {
		p = p.alone()
		if kind := p.loose("type"); kind != "dynamic-tool" && !strings.HasPrefix(kind, "tool-") {
			continue
		}
		sub := engine.Submission{ToolCallID: p.loose("toolCallId"), Kind: eventlog.SubmitClientResult}
		switch p.loose("state") {
		case "output-available":
			sub.Result = p.orNull("output") // clients leave undefined out
		case "output-error":
			sub.Error = p.word("errorText")
		case "approval-responded":
			sub.Kind = eventlog.SubmitApproval
			approval := p.nested("approval")
			sub.ApprovalID = approval.word("id")
			sub.Approved = approval.flag("approved")
			sub.Reason = approval.optText("reason")
		default:
			continue
		}
		all = append(all, chatAnswer{sub, *p.err})
	}
	return all
}

// looseText returns the text of a message of which nothing else matters.
func (o *object) looseText() string {
	var text strings.Builder
	for _, p := range o.alone().objects("parts") {
		if p.loose("type") == "text" {
			text.WriteString(p.loose("text"))
		}
	}
	return text.String()
}

// shows reports whether an assistant's message has a part of a call.
func (o *object) shows(call string) bool {
	for _, p := range o.alone().objects("parts") {
		if p.loose("toolCallId") == call {
			return true
		}
	}
	return false
}

// steps counts the steps of an assistant's message.
func (o *object) steps() int {
	n := 0
	for _, p := range o.alone().objects("parts") {
		if p.loose("type") == "step-start" {
			n++
		}
	}
	return n
}

// loose returns a string, "" if it is none: for what is no more than compared.
func (o *object) loose(name string) string {
	var s string
	if json.Unmarshal(o.members[name], &s) != nil {
		return ""
	}
	return s
}

// alone returns the object with problems of its own.
func (o *object) alone() *object {
	return &object{path: o.path, members: o.members, err: new(error)}
}

// nested returns a required object.
func (o *object) nested(name string) *object {
	inner := &object{path: o.path + name + ".", err: o.err}
	if raw := o.optObject(name); raw != nil {
		_ = json.Unmarshal(raw, &inner.members)
	} else {
		o.fail(name, "is required")
	}
	return inner
}
