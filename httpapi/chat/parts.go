package chat

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// userMessage returns the input that a user's UI message is: its text parts joined, and
// its file parts. Parts of other types are ignored. The request's metadata overrides the
// message's own.
func userMessage(o *web.Object, request json.RawMessage) (agentloop.Input, error) {
	in := agentloop.Input{Metadata: mergedMetadata(o, request)}
	if id := o.Loose("id"); eventlog.ValidateID(id) == nil {
		in.MessageID = id
	}
	if !o.Has("parts") {
		o.Fail("parts", "is required")
	}
	for _, p := range o.Objects("parts") {
		switch p.Text("type") {
		case "text":
			in.Content += p.Text("text")
		case "file":
			file := fact.MessageFile{
				Data: p.Text("url"), MediaType: p.Word("mediaType"), Filename: p.OptText("filename"),
			}
			if !strings.HasPrefix(file.Data, "data:") {
				p.Fail("url", "must be a data URL")
			}
			in.Files = append(in.Files, file)
		}
	}
	if in.Content == "" && len(in.Files) == 0 {
		o.Fail("parts", "must hold text or a file")
	}
	return in, *o.Err
}

// mergedMetadata returns the message's metadata overridden by the request's, or nil if
// there is neither. Clients must not set names that say how helixd treats a message.
func mergedMetadata(o *web.Object, request json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	for _, raw := range []json.RawMessage{optMetadata(o), request} {
		if raw != nil {
			_ = json.Unmarshal(raw, &all) // an object; into the same map
		}
	}
	for _, name := range []string{projector.OwnMetadata, hiddenMetadata} {
		if all[name] != nil {
			o.Fail("metadata."+name, "is reserved")
		}
	}
	if all == nil {
		return nil
	}
	merged, err := eventlog.Marshal(all)
	if err != nil {
		o.Fail("metadata", "must be an object")
	}
	return merged
}

// hiddenMetadata keeps a message out of the conversation that users see: the
// client that sends it would lose its place.
const hiddenMetadata = "hidden"

// optMetadata is the member "metadata", which clients may also send as null.
func optMetadata(o *web.Object) json.RawMessage {
	if string(o.Members["metadata"]) == "null" {
		return nil
	}
	return o.OptObject("metadata")
}

// toolAnswer is a client's answer to a tool call, from the call's part.
type toolAnswer struct {
	submission engine.Submission // without its session
	problem    error             // matters only if the call waits
}

// answersOf returns the answers in the tool parts of an assistant's message. Most of them
// are history: outputs of tools that have run on the server look the same.
func answersOf(parts []*web.Object) []toolAnswer {
	var all []toolAnswer
	for _, p := range parts {
		p = p.Alone()
		if kind := p.Loose("type"); kind != "dynamic-tool" && !strings.HasPrefix(kind, "tool-") {
			continue
		}
		sub := engine.Submission{ToolCallID: p.Loose("toolCallId"), Kind: fact.SubmitClientResult}
		switch p.Loose("state") {
		case "output-available":
			sub.Result = p.OrNull("output") // clients leave undefined out
		case "output-error":
			sub.Error = p.Word("errorText")
		case "approval-responded":
			sub.Kind = fact.SubmitApproval
			approval := p.Nested("approval")
			sub.ApprovalID = approval.Word("id")
			sub.Approved = approval.Flag("approved")
			sub.Reason = approval.OptText("reason")
		default:
			continue
		}
		all = append(all, toolAnswer{sub, *p.Err})
	}
	return all
}

// textOf returns the text of a message whose other parts don't matter.
func textOf(o *web.Object) string {
	var text strings.Builder
	for _, p := range o.Alone().Objects("parts") {
		if p.Loose("type") == "text" {
			text.WriteString(p.Loose("text"))
		}
	}
	return text.String()
}

// countSteps counts the steps of an assistant's message.
func countSteps(o *web.Object) int {
	n := 0
	for _, p := range o.Alone().Objects("parts") {
		if p.Loose("type") == "step-start" {
			n++
		}
	}
	return n
}
