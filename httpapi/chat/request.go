package chat

import (
	"encoding/json"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// postBody is the body of POST /chat, as the AI SDK's clients send it. The server has its own
// history of the session: it reads only the last message, and the answers
// in the last assistant's message.
type postBody struct {
	session    string
	agentType  string          // "": none is named
	regenerate bool            // trigger regenerate-message
	messageID  string          // "": none
	name       string          // of the run that regenerates, see fact.RunOptions; "": none
	users      int             // how many of them are users'
	last       *web.Object     // of the messages; nil: there is none
	lastID     string          // its id, or ""
	labels     control.Labels  // of the session, if it is new
	metadata   json.RawMessage // of the user message; nil: none

	// What the last message says if it is a user's, and what is wrong with it:
	// that matters only if it is new.
	fromUser     bool
	input        agentloop.Input
	inputProblem error

	// assistant is the last assistant's message, nil if there is none.
	assistant *web.Object
	answers   []toolAnswer
	answered  map[string]bool // the calls of answers
	shown     map[string]bool // the calls of which assistant has a part
}

// readBody reads the body of POST /chat. The session is the member sessionId,
// else id: an id that is not the session's names only the client's chat.
func (s *Routes) readBody(w http.ResponseWriter, r *web.Request) (postBody, error) {
	o, err := r.ReadNamed(w, "sessionId", "id")
	if err != nil {
		return postBody{}, err
	}
	b := postBody{labels: control.LabelsOf(o), metadata: o.OptObject("metadata")}
	if o.Members["messages"] == nil {
		o.Fail("messages", "is required")
	}
	if o.Has("sessionId") {
		b.session = o.SessionID()
	} else if b.session = o.Text("id"); *o.Err == nil {
		*o.Err = eventlog.ValidateClientSessionID(b.session)
	}
	b.agentType, b.messageID = o.OptWord("agentType"), o.OptWord("messageId")
	switch o.OptText("trigger") {
	case "regenerate-message":
		b.regenerate = true
	case "submit-message":
	default:
		if o.Has("trigger") {
			o.Fail("trigger", "must be submit-message or regenerate-message")
		}
	}
	if *o.Err != nil {
		return postBody{}, *o.Err
	}
	if b.regenerate {
		key, err := web.IdempotencyKey(r.Header)
		if err != nil {
			return postBody{}, err
		}
		b.name = runName(key, b.messageID)
	}
	if b.readMessages(o); *o.Err != nil {
		return postBody{}, *o.Err
	}
	return b, nil
}

// readMessages keeps the messages that count.
func (b *postBody) readMessages(o *web.Object) {
	o.Each("messages", func(_ int, m *web.Object) {
		b.last = m
		switch m.Loose("role") {
		case "user":
			b.users++
			b.fromUser = true
			return
		case "assistant":
			b.assistant = m
		}
		b.fromUser = false
	})
	if *o.Err != nil {
		return
	}
	if b.last != nil { // compared with each of the session's
		b.lastID = b.last.Loose("id")
	}
	if b.fromUser {
		b.input, b.inputProblem = userMessage(b.last.Alone(), b.metadata)
	}
	if b.assistant != nil {
		b.readParts()
	}
}

// readParts reads the parts of the last assistant's message, which are decoded only here: a
// session may have thousands of calls, and each of them is looked up in the message.
func (b *postBody) readParts() {
	parts := b.assistant.Alone().Objects("parts")
	b.answers, b.answered, b.shown = answersOf(parts), map[string]bool{}, map[string]bool{}
	for _, a := range b.answers {
		b.answered[a.submission.ToolCallID] = true
	}
	for _, p := range parts {
		b.shown[p.Loose("toolCallId")] = true
	}
}

// knownAs returns the client's id of the assistant's message that continues, or "".
func (b *postBody) knownAs() string {
	switch {
	case b.fromUser || b.assistant == nil:
		return ""
	case b.messageID != "":
		return b.messageID
	}
	return b.assistant.Loose("id")
}
