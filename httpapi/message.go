package httpapi

import (
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// messages reads the member "message": a string, or UserInputMessages
// (document 004, facts 3.1).
func (o *object) messages() []agentloop.Input {
	const name = "message"
	switch raw := o.members[name]; {
	case raw == nil:
		o.fail(name, "is required")
		return nil
	case raw[0] == '"':
		return []agentloop.Input{{Content: o.word(name)}}
	case raw[0] != '[':
		o.fail(name, "must be a string or an array of messages")
		return nil
	}
	items := o.objects(name)
	if len(items) == 0 {
		o.fail(name, "must hold at least one message")
	}
	inputs := make([]agentloop.Input, len(items))
	for i, m := range items {
		inputs[i] = m.message()
	}
	return inputs
}

func (o *object) message() agentloop.Input {
	if o.text("role") != "user" {
		o.fail("role", `must be "user"`)
	}
	in := agentloop.Input{Content: o.text("content"), Metadata: o.optObject("metadata")}
	for _, f := range o.objects("files") {
		file := eventlog.MessageFile{
			Data: f.text("data"), MediaType: f.word("mediaType"), Filename: f.optText("filename"),
		}
		if !strings.HasPrefix(file.Data, "data:") {
			f.fail("data", "must be a data URL")
		}
		in.Files = append(in.Files, file)
	}
	if in.Content == "" && len(in.Files) == 0 {
		o.fail("content", "must not be empty without files")
	}
	return in
}
