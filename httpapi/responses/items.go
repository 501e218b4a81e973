package responses

import "github.com/helixd/helixd/eventlog"

// itemKind is the type of an item.
type itemKind string

const (
	kindMessage   itemKind = "message"
	kindReasoning itemKind = "reasoning"
	kindFunction  itemKind = "function_call" // the client executes it
	kindOutput    itemKind = "function_call_output"
	kindMCP       itemKind = "mcp_call" // the server executes it
	kindApproval  itemKind = "mcp_approval_request"
)

// Statuses of items and responses.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusQueued     = "queued"
	statusCancelled  = "cancelled"
)

// item is an item of the output.
type item struct {
	kind  itemKind
	id    string
	index int
	first uint64 // the record that began it
	text  []byte // of a message or reasoning
	notes []any  // annotations of a message
	call  string // call_id
	name  string // of a tool
	args  []byte

	result   string
	failure  string // why the call failed
	approval string // the item that asked for its approval; empty: none did

	status   string
	recorded bool // the model's answer has it
	done     bool
	gone     bool // taken back: it is not in the output
}

// prefix is that of the ids of such items.
func (it *item) prefix() string {
	switch it.kind {
	case kindReasoning:
		return "rs"
	case kindFunction:
		return "fc"
	case kindOutput:
		return "fco"
	case kindMCP:
		return "mcp"
	case kindApproval:
		return "mcpr"
	}
	return "msg"
}

// newItem makes an item with the next index.
func (f *folder) newItem(r eventlog.Record, kind itemKind) *item {
	it := &item{kind: kind, index: len(f.items), first: r.Sequence, status: statusInProgress}
	it.id = outputID(it.prefix(), f.run, it.index)
	f.items = append(f.items, it)
	return it
}

// added makes the event of a new item.
func (f *folder) added(it *item) {
	f.send("response.output_item.added", object{"output_index": it.index, "item": it.show()})
}

func (f *folder) add(r eventlog.Record, kind itemKind) *item {
	it := f.newItem(r, kind)
	f.added(it)
	return it
}

// finish makes the events that end an item.
func (f *folder) finish(it *item, status string) {
	it.done = true
	at := object{"item_id": it.id, "output_index": it.index}
	with := func(more object) object {
		for k, v := range at {
			more[k] = v
		}
		return more
	}
	switch it.kind {
	case kindMessage:
		f.send("response.output_text.done", with(object{"content_index": 0, "text": string(it.text), "logprobs": []any{}}))
		f.send("response.content_part.done", with(object{"content_index": 0, "part": it.part()}))
	case kindReasoning:
		f.send("response.reasoning_summary_text.done", with(object{"summary_index": 0, "text": string(it.text)}))
		f.send("response.reasoning_summary_part.done", with(object{"summary_index": 0, "part": object{"type": "summary_text", "text": string(it.text)}}))
	case kindFunction:
		f.send("response.function_call_arguments.done", with(object{"name": it.name, "arguments": string(it.args)}))
	case kindMCP:
		if status == statusCompleted {
			f.send("response.mcp_call.completed", with(object{}))
		} else {
			f.send("response.mcp_call.failed", with(object{}))
		}
	}
	it.status = status
	f.send("response.output_item.done", object{"output_index": it.index, "item": it.show()})
}

// part is the content of a message.
func (it *item) part() object {
	notes := it.notes
	if notes == nil {
		notes = []any{}
	}
	return object{"type": "output_text", "text": string(it.text), "annotations": notes, "logprobs": []any{}}
}

// show returns the item as it is now.
func (it *item) show() object {
	o := object{"type": it.kind, "id": it.id, "status": it.status}
	switch it.kind {
	case kindMessage:
		o["role"], o["content"] = "assistant", []any{}
		if len(it.text) > 0 || it.done {
			o["content"] = []any{it.part()}
		}
	case kindReasoning:
		o["summary"] = []any{}
		if len(it.text) > 0 || it.done {
			o["summary"] = []any{object{"type": "summary_text", "text": string(it.text)}}
		}
	case kindFunction:
		o["call_id"], o["name"], o["arguments"] = it.call, it.name, string(it.args)
	case kindOutput:
		o["call_id"], o["output"] = it.call, it.result
	case kindMCP:
		o["name"], o["arguments"], o["server_label"] = it.name, string(it.args), serverLabel
		o["output"], o["error"], o["approval_request_id"] = nil, nil, nil
		if it.approval != "" {
			o["approval_request_id"] = it.approval
		}
		switch it.status {
		case statusCompleted:
			o["output"] = it.result
		case statusFailed:
			o["error"] = object{"type": "mcp_tool_execution_error", "content": []any{object{"type": "text", "text": it.failure}}}
		}
	case kindApproval:
		delete(o, "status")
		o["name"], o["arguments"], o["server_label"] = it.name, string(it.args), serverLabel
	}
	return o
}

// serverLabel is the server_label of calls that helixd executes.
const serverLabel = "helixd"
