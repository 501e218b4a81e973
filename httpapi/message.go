package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
)

// sendMessage answers POST /sessions/{id}/messages: it begins the session's next
// turn, or continues one that was interrupted or waits. The member metadata is
// the last message's, over what that has itself, as for POST /chat.
func (s *Server) sendMessage(w http.ResponseWriter, r *request) error {
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	body, err := readObject(w, r)
	if err != nil {
		return err
	}
	req := engine.MessageRequest{SessionID: r.session, Messages: body.messages(), UserID: body.labels().userID, Key: key}
	if metadata := body.optObject("metadata"); metadata != nil && *body.err == nil {
		last := &req.Messages[len(req.Messages)-1]
		last.Metadata = merged(last.Metadata, metadata)
	}
	return s.begin(w, r, r.session, *body.err, func(ctx context.Context) (engine.Started, error) {
		if err := CallerOf(ctx).checkUser(req.UserID); err != nil {
			return engine.Started{}, err
		}
		req.UserID = cmp.Or(req.UserID, CallerOf(ctx).only())
		return s.loop.SendMessage(ctx, req)
	})
}

// merged returns an object with the members of another over its own.
func merged(object, over json.RawMessage) json.RawMessage {
	if object == nil {
		return over
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(object, &all) // both are objects
	_ = json.Unmarshal(over, &all)
	raw, _ := json.Marshal(all)
	return raw
}

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
