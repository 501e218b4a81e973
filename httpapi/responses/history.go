package responses

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// entry is an item of a conversation.
type entry struct {
	shown object
	input bool   // a client has brought it along
	run   string // the run that was requested with it, or made it; empty: none
}

// history returns the items of a session, oldest first: what clients have brought along, and
// the output of each run.
func (s *Routes) history(ctx context.Context, session string, t *projector.Tree) ([]entry, error) {
	h := &historian{session: session, agent: t.AgentType}
	for r, err := range s.log.Read(ctx, session, 0, t.Head) {
		if err != nil {
			return nil, err
		}
		if t.Dead.Covers(r) && rolledBack(r) {
			continue
		}
		h.take(r)
	}
	h.endRun()
	return append(h.all, h.pending...), nil
}

// rolledBack reports whether a record that is truncated is not to be shown: the output of a
// run leaves out by itself what its own markers take back.
func rolledBack(r eventlog.Record) bool { return r.Kind == eventlog.KindFact }

// historian collects items.
type historian struct {
	session, agent string
	all            []entry
	pending        []entry // that no run was requested with yet
	current        *folder // of the last run
}

func (h *historian) take(r eventlog.Record) {
	if h.current != nil {
		h.current.fold(r)
	}
	if r.Kind != eventlog.KindFact {
		return
	}
	what, err := r.Fact()
	if err != nil {
		return
	}
	own := r.Agent == h.session
	switch what := what.(type) {
	case *fact.SessionForked:
		for _, shown := range forkedItems(h.session, r.Sequence, what.State) {
			h.all = append(h.all, entry{shown: shown})
		}
	case *fact.UserMessage:
		if own && !(projector.Message{Metadata: what.Metadata}).Hidden() {
			h.add(userItem(h.session, r.Sequence, what))
		}
	case *fact.MessageAdded:
		if own {
			h.add(addedItems(h.session, r.Sequence, what)...)
		}
	case *fact.ResultSubmitted:
		if shown := answerItem(h.session, r.Sequence, r.Run, what); shown != nil {
			h.add(shown)
		}
	case *fact.RunRequested:
		if !own {
			return
		}
		h.endRun()
		for i := range h.pending {
			h.pending[i].run = what.RunID
		}
		h.all, h.pending = append(h.all, h.pending...), nil
		h.current = newFolder(h.session, what.RunID, nil)
		h.current.fold(r)
	}
}

func (h *historian) add(items ...object) {
	for _, shown := range items {
		h.pending = append(h.pending, entry{shown: shown, input: true})
	}
}

// endRun adds the output of the last run. What was sent while it ran comes after it.
func (h *historian) endRun() {
	if h.current == nil {
		return
	}
	for _, shown := range h.current.output() {
		h.all = append(h.all, entry{shown: shown.(object), run: h.current.run})
	}
	h.current = nil
}

func userItem(session string, seq uint64, m *fact.UserMessage) object {
	content := []any{}
	if m.Content != "" {
		content = append(content, object{"type": "input_text", "text": m.Content})
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.MediaType, "image/") {
			content = append(content, object{"type": "input_image", "image_url": f.Data, "detail": "auto", "file_id": nil})
		} else {
			content = append(content, object{"type": "input_file", "file_data": f.Data, "filename": f.Filename})
		}
	}
	return object{"type": "message", "id": inputID("msg", session, seq, 0), "role": "user", "status": statusCompleted, "content": content}
}

// addedItems returns the items that a message of another conversation was.
func addedItems(session string, seq uint64, m *fact.MessageAdded) (all []object) {
	switch m.Role {
	case fact.AddedSystem:
		return []object{systemItem(inputID("msg", session, seq, 0), m.Content)}
	case fact.AddedTool:
		return []object{outputItem(inputID("fco", session, seq, 0), m.ToolCallID, web.TextOf(m.Result, m.Error))}
	}
	for i, p := range m.Parts {
		if it := partItem(p); it != nil {
			it.id = inputID(it.prefix(), session, seq, i)
			all = append(all, it.show())
		}
	}
	return all
}

// partItem returns the item that a part of an assistant's message is, without an id; nil: none.
func partItem(p fact.TurnPart) *item {
	it := &item{status: statusCompleted, done: true}
	switch {
	case p.ToolCall != nil:
		it.kind, it.call, it.name, it.args = kindFunction, p.ToolCall.ID, p.ToolCall.Name, p.ToolCall.Arguments
	case p.Reasoning != "":
		it.kind, it.text = kindReasoning, []byte(p.Reasoning)
	case p.Text != "":
		it.kind, it.text = kindMessage, []byte(p.Text)
	default:
		return nil
	}
	return it
}

func systemItem(id, content string) object {
	return object{
		"type": "message", "id": id, "role": "system", "status": statusCompleted,
		"content": []any{object{"type": "input_text", "text": content}},
	}
}

func outputItem(id, call, output string) object {
	return object{"type": kindOutput, "id": id, "status": statusCompleted, "call_id": call, "output": output}
}

// answerItem returns the item that an answer to a call was, or nil if no client has sent it.
func answerItem(session string, seq uint64, run string, f *fact.ResultSubmitted) object {
	switch f.Kind {
	case fact.SubmitClientResult:
		return outputItem(inputID("fco", session, seq, 0), f.ToolCallID, web.TextOf(f.Result, f.Error))
	case fact.SubmitApproval:
		return object{
			"type": "mcp_approval_response", "id": inputID("mcpa", session, seq, 0), "approve": f.Approved, "reason": optional(f.Reason),
			"approval_request_id": approvalItemID(run + "::" + f.ToolCallID),
		}
	}
	return nil
}

// page says which part of a list a client wants.
type page struct {
	limit       int
	after       string
	oldestFirst bool
}

// Sizes of pages.
const (
	defaultPage = 20
	maxPage     = 100
)

func pageOf(q web.Query) (page, error) {
	p := page{limit: q.Integer("limit", defaultPage, 1, maxPage), after: q.Word("after")}
	switch order := q.Word("order"); order {
	case "asc":
		p.oldestFirst = true
	case "", "desc":
	default:
		return p, invalid("order", "order must be asc or desc.")
	}
	return p, *q.Err
}

// of returns a page of items, which come oldest first.
func (p page) of(items []object) (object, error) {
	items = slices.Clone(items)
	if !p.oldestFirst {
		slices.Reverse(items)
	}
	if p.after != "" {
		i := slices.IndexFunc(items, func(o object) bool { return o["id"] == p.after })
		if i < 0 {
			return nil, &Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("Item with id '%s' not found.", p.after), Param: "after", Code: "item_not_found"}
		}
		items = items[i+1:]
	}
	more := len(items) > p.limit
	if more {
		items = items[:p.limit]
	}
	return listOf(items, more), nil
}

func listOf(items []object, more bool) object {
	list := object{"object": "list", "data": items, "first_id": nil, "last_id": nil, "has_more": more}
	if len(items) == 0 {
		list["data"] = []any{}
		return list
	}
	list["first_id"], list["last_id"] = items[0]["id"], items[len(items)-1]["id"]
	return list
}
