package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// chatBody is the body of POST /chat, as the AI SDK's clients send it
// (aisdk.md). The server's history counts: of the messages only the last one
// and the answers in the last assistant's one are looked at closely.
type chatBody struct {
	session    string
	agentType  string          // "": none is named
	regenerate bool            // trigger regenerate-message
	messageID  string          // "": none
	users      int             // how many of them are users'
	last       *object         // of the messages; nil: there is none
	labels     labels          // of the session, if it is new
	metadata   json.RawMessage // of the user message; nil: none

	// What the last message says if it is a user's, and what is wrong with it:
	// that matters only if it is new.
	fromUser     bool
	input        agentloop.Input
	inputProblem error

	// assistant is the last assistant's message, nil if there is none.
	assistant *object
	answers   []chatAnswer
}

// readChat reads the body of POST /chat. The session is the member sessionId,
// else id: an id that is not the session's names only the client's chat.
func (s *chatRoutes) readChat(w http.ResponseWriter, r *request) (chatBody, error) {
	o, err := r.readNamed(w, api.MaxBody, "sessionId", "id")
	if err != nil {
		return chatBody{}, err
	}
	b := chatBody{labels: labelsOf(o), metadata: o.optObject("metadata")}
	if o.members["messages"] == nil {
		o.fail("messages", "is required")
	}
	if o.has("sessionId") {
		b.session = o.sessionID()
	} else if b.session = o.text("id"); *o.err == nil {
		*o.err = eventlog.ValidateClientSessionID(b.session)
	}
	if o.has("agentType") {
		b.agentType = o.word("agentType")
	}
	if o.has("messageId") {
		b.messageID = o.word("messageId")
	}
	switch o.optText("trigger") {
	case "regenerate-message":
		b.regenerate = true
	case "submit-message":
	default:
		if o.has("trigger") {
			o.fail("trigger", "must be submit-message or regenerate-message")
		}
	}
	if *o.err != nil {
		return chatBody{}, *o.err
	}
	if b.readMessages(o); *o.err != nil {
		return chatBody{}, *o.err
	}
	return b, nil
}

// readMessages keeps those that are looked at.
func (b *chatBody) readMessages(o *object) {
	o.each("messages", func(_ int, m *object) {
		b.last = m
		switch m.loose("role") {
		case "user":
			b.users++
			b.fromUser = true
			return
		case "assistant":
			b.assistant = m
		}
		b.fromUser = false
	})
	if *o.err != nil {
		return
	}
	if b.fromUser {
		b.input, b.inputProblem = userMessage(b.last.alone(), b.metadata)
	}
	if b.assistant != nil {
		b.answers = answersOf(b.assistant)
	}
}

// knownAs returns the id by which the client knows the assistant's message that
// it goes on with, or "".
func (b *chatBody) knownAs() string {
	switch {
	case b.fromUser || b.assistant == nil:
		return ""
	case b.messageID != "":
		return b.messageID
	}
	return b.assistant.loose("id")
}
