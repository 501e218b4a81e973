package responses

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// maxNewItems is how many items a request may add to a conversation.
const maxNewItems = 20

// CreateConversation answers POST /v1/conversations. The session has no agent yet: its first
// response names one.
func (s *Routes) CreateConversation(w http.ResponseWriter, r *web.Request) error {
	o, name, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	o.DropNulls()
	metadata, err := metadataOf(o)
	if err != nil {
		return err
	}
	in, err := itemsOf(o)
	if err != nil {
		return err
	}
	session := name
	if session == "" {
		session = s.newID()
	}
	if err := r.AuthorizeAs(session, true); err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	caller := auth.CallerOf(ctx)
	err = s.loop.Admin.Create(ctx, admin.CreateRequest{
		SessionID: session, UserID: caller.User, Tenant: caller.Tenant, Metadata: metadata, Messages: in.messages,
	})
	if repeated := name != "" && errors.Is(err, agentloop.ErrSessionExists); err != nil && !repeated {
		return err
	}
	t, err := s.states.Head(ctx, session)
	if err != nil {
		return err
	}
	return r.OK(w, conversationShown(t))
}

// readBody reads a request about conversations, which may have no body if it makes one. name names
// what it does, see nameOf; empty: it has no idempotency key.
func (s *Routes) readBody(w http.ResponseWriter, r *web.Request) (o *web.Object, name string, err error) {
	key, err := web.IdempotencyKey(r.Header)
	if err != nil {
		return nil, "", err
	}
	var raw []byte
	if o = (&web.Object{Err: new(error)}); r.ContentLength != 0 || r.Segment(3) != "" {
		if raw, err = r.ReadBody(w, api.MaxBody); err != nil {
			return nil, "", err
		}
		if o, err = r.Parse(raw); err != nil {
			return nil, "", err
		}
	}
	if key != "" { // the same body may be meant for several conversations
		name = nameOf(auth.CallerOf(r.Context()), key, append([]byte("conversations/"+r.Segment(3)+"\n"), raw...))
	}
	return o, name, nil
}

// itemsOf reads the items that are to be added to a conversation. None of them answers a call
// that waits: that is for a response.
func itemsOf(o *web.Object) (input, error) {
	in, err := inputOf(o, "items")
	switch {
	case err != nil:
		return in, err
	case *o.Err != nil:
		return in, *o.Err
	case len(in.answers) > 0:
		return in, noCall(in.answers[0].param, in.answers[0].ToolCallID)
	case len(o.Objects("items")) > maxNewItems:
		return in, invalid("items", "at most 20 items can be added at once.")
	}
	return in, nil
}

// nameMessages gives the messages ids by which the session recognises them.
func (in *input) nameMessages(name string) {
	for i := range in.messages {
		id := fmt.Sprintf("%s-%d", name, i)
		if m := &in.messages[i]; m.Added != nil {
			m.Added.MessageID = id
		} else {
			m.MessageID = id
		}
	}
}

func conversationShown(t *projector.Tree) object {
	o := object{"id": conversationID(t.SessionID), "object": "conversation", "created_at": t.CreatedAt / 1000, "metadata": t.Metadata}
	if t.Metadata == nil {
		o["metadata"] = object{}
	}
	return o
}

// conversation returns the state of the conversation that the path names.
func (s *Routes) conversation(r *web.Request) (*projector.Tree, error) {
	id := r.Segment(3)
	session, ok := parseConversationID(id)
	if !ok {
		return nil, noConversation(id)
	}
	t, err := s.session(r, session, noConversation(id))
	if err == nil && t.Ephemeral {
		return nil, noConversation(id)
	}
	return t, err
}

// RetrieveConversation answers GET /v1/conversations/{id}. Every session is a conversation.
func (s *Routes) RetrieveConversation(w http.ResponseWriter, r *web.Request) error {
	t, err := s.conversation(r)
	if err != nil {
		return err
	}
	return r.OK(w, conversationShown(t))
}

// UpdateConversation answers POST /v1/conversations/{id}: it replaces the metadata.
func (s *Routes) UpdateConversation(w http.ResponseWriter, r *web.Request) error {
	t, err := s.conversation(r)
	if err != nil {
		return err
	}
	o, _, err := s.readBody(w, r) // a repetition changes nothing
	if err != nil {
		return err
	}
	o.DropNulls()
	metadata, err := metadataOf(o)
	if err == nil {
		err = *o.Err
	}
	if err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	if err := s.loop.Admin.ReplaceMetadata(ctx, t.SessionID, metadata); err != nil {
		return err
	}
	t.Metadata = metadata
	return r.OK(w, conversationShown(t))
}

// DeleteConversation answers DELETE /v1/conversations/{id}: the session is erased.
func (s *Routes) DeleteConversation(w http.ResponseWriter, r *web.Request) error {
	t, err := s.conversation(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	status, err := s.erase(ctx, t)
	if err != nil {
		return err
	}
	r.Audit("session erased")
	return r.Respond(w, status, object{"id": conversationID(t.SessionID), "object": "conversation.deleted", "deleted": true})
}

// Items answers GET /v1/conversations/{id}/items.
func (s *Routes) Items(w http.ResponseWriter, r *web.Request) error {
	page, err := pageOf(r.Query)
	if err != nil {
		return err
	}
	items, err := s.items(r)
	if err != nil {
		return err
	}
	list, err := page.of(items)
	if err != nil {
		return err
	}
	return r.OK(w, list)
}

// items returns the items of the conversation that the path names, oldest first.
func (s *Routes) items(r *web.Request) ([]object, error) {
	t, err := s.conversation(r)
	if err != nil {
		return nil, err
	}
	if err := r.LargeAnswer(t.Bytes); err != nil { // all items are made, however few are shown
		return nil, err
	}
	all, err := s.history(r.Context(), t.SessionID, t)
	if err != nil {
		return nil, err
	}
	items := make([]object, len(all))
	for i, it := range all {
		items[i] = it.shown
	}
	return items, nil
}

// AddItems answers POST /v1/conversations/{id}/items. No agent answers them. A request with an
// idempotency key adds them once: their ids come from it.
func (s *Routes) AddItems(w http.ResponseWriter, r *web.Request) error {
	t, err := s.conversation(r)
	if err != nil {
		return err
	}
	o, name, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	in, err := itemsOf(o)
	if err != nil {
		return err
	}
	if len(in.messages) == 0 {
		return &Problem{Status: 400, Message: "Missing required parameter: 'items'.", Param: "items", Code: "missing_required_parameter"}
	}
	if name != "" {
		in.nameMessages(name)
	}
	ctx, cancel := r.Detached()
	defer cancel()
	after, last, err := s.loop.Admin.AddMessages(ctx, t.SessionID, in.messages)
	if err != nil {
		return err
	}
	h := &historian{session: t.SessionID}
	for rec, err := range s.log.Read(ctx, t.SessionID, after, last) {
		if err != nil {
			return err
		}
		h.take(rec)
	}
	var added []object
	for _, it := range append(h.all, h.pending...) {
		if it.input {
			added = append(added, it.shown)
		}
	}
	return r.OK(w, listOf(added, false))
}

// Item answers GET /v1/conversations/{id}/items/{item}.
func (s *Routes) Item(w http.ResponseWriter, r *web.Request) error {
	items, err := s.items(r)
	if err != nil {
		return err
	}
	id := r.Segment(5)
	for _, it := range items {
		if it["id"] == id {
			return r.OK(w, it)
		}
	}
	return noItem(id)
}

// DeleteItem answers DELETE /v1/conversations/{id}/items/{item}, which is not possible.
func (s *Routes) DeleteItem(_ http.ResponseWriter, r *web.Request) error {
	if _, err := s.conversation(r); err != nil {
		return err
	}
	return unsupported("item_id", "items can't be deleted one by one: the log keeps what was said. Delete the conversation.")
}
