package control

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// SendMessage answers POST /sessions/{id}/messages: it begins the session's next
// turn, or continues one that was interrupted or waits. The members of metadata replace
// those of the last message's own, as for POST /chat.
func (s *Routes) SendMessage(w http.ResponseWriter, r *web.Request) error {
	key, err := web.IdempotencyKey(r.Header)
	if err != nil {
		return err
	}
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	req := engine.MessageRequest{SessionID: r.Session, Messages: messagesOf(body), UserID: LabelsOf(body).UserID, Key: key}
	if metadata := body.OptObject("metadata"); metadata != nil && *body.Err == nil {
		last := &req.Messages[len(req.Messages)-1]
		last.Metadata = merged(last.Metadata, metadata)
	}
	return s.begin(w, r, r.Session, *body.Err, func(ctx context.Context) (engine.Started, error) {
		if err := auth.CallerOf(ctx).CheckUser(req.UserID); err != nil {
			return engine.Started{}, err
		}
		req.UserID = cmp.Or(req.UserID, auth.CallerOf(ctx).OnlyUser())
		return s.loop.SendMessage(ctx, req)
	})
}

// merged returns an object whose members are replaced by those of another.
func merged(object, over json.RawMessage) json.RawMessage {
	if object == nil {
		return over
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(object, &all) // both are objects
	_ = json.Unmarshal(over, &all)
	raw, _ := eventlog.Marshal(all)
	return raw
}

// messagesOf reads the member "message": a string, or UserInputMessages.
func messagesOf(o *web.Object) []agentloop.Input {
	const name = "message"
	switch raw := o.Members[name]; {
	case raw == nil:
		o.Fail(name, "is required")
		return nil
	case raw[0] == '"':
		return []agentloop.Input{{Content: o.Word(name)}}
	case raw[0] != '[':
		o.Fail(name, "must be a string or an array of messages")
		return nil
	}
	items := o.Objects(name)
	if len(items) == 0 {
		o.Fail(name, "must hold at least one message")
	}
	inputs := make([]agentloop.Input, len(items))
	for i, m := range items {
		inputs[i] = messageOf(m)
	}
	return inputs
}

func messageOf(o *web.Object) agentloop.Input {
	if o.Text("role") != "user" {
		o.Fail("role", `must be "user"`)
	}
	in := agentloop.Input{Content: o.Text("content"), Metadata: o.OptObject("metadata")}
	for _, f := range o.Objects("files") {
		file := fact.MessageFile{
			Data: f.Text("data"), MediaType: f.Word("mediaType"), Filename: f.OptText("filename"),
		}
		if !strings.HasPrefix(file.Data, "data:") {
			f.Fail("data", "must be a data URL")
		}
		in.Files = append(in.Files, file)
	}
	if in.Content == "" && len(in.Files) == 0 {
		o.Fail("content", "must not be empty without files")
	}
	return in
}
