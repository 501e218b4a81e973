package responses

import (
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// object is a JSON object of the protocol.
type object = map[string]any

// event is a stream event. Its place in the response's stream is its sequence_number.
type event struct {
	name string
	data object
}

// folder turns the records of a run into the events of its response. It is pure: the same
// records make the same events.
//
// A message and its reasoning are done when the model's answer is recorded, a call of a
// client's tool when it waits for the client, and any other call when it has its result. What
// a crash or a failure of the model takes back before that is done as incomplete, and is not
// in the final output. Its output_index is not used again.
type folder struct {
	session, run string
	state        header
	emit         func(event) // nil: only the response is wanted
	next         int         // sequence_number of the next event
	after        int         // the last event that the client has; -1: none

	items   []*item // by output_index
	message *item   // that grows, or nil
	thought *item
	calls   map[string]*item // by the engine's id of the call
	pieces  map[string]*piece
	tools   map[string]bool // the client's, of this run
	waiting map[string]bool // calls that wait for a client
	shown   map[string]int  // how often a call id was shown

	begun, claimed, ended bool
}

// piece is a call as far as it has streamed.
type piece struct {
	name string
	args []byte
}

func newFolder(session, run string, emit func(event)) *folder {
	return &folder{
		session: session, run: run, emit: emit, after: -1, calls: map[string]*item{}, pieces: map[string]*piece{}, tools: map[string]bool{},
		waiting: map[string]bool{}, shown: map[string]int{},
	}
}

// wanted reports whether the client lacks the next event.
func (f *folder) wanted() bool { return f.emit != nil && f.next > f.after }

// send makes an event.
func (f *folder) send(name string, data object) {
	if f.wanted() {
		data["type"], data["sequence_number"] = name, f.next
		f.emit(event{name, data})
	}
	f.next++
}

// lifecycle makes an event that has the whole response.
func (f *folder) lifecycle(name string) {
	data := object{}
	if f.wanted() {
		data["response"] = f.response()
	}
	f.send(name, data)
}

// fold takes the session's records in order, from the run's request on.
func (f *folder) fold(r eventlog.Record) {
	switch {
	case f.ended:
	case r.Kind == eventlog.KindFact:
		if what, err := r.Fact(); err == nil {
			f.takeFact(r, what)
		}
	case f.begun:
		if c, err := r.Chunk(); err == nil {
			f.chunk(r, c)
		}
	}
}

func (f *folder) takeFact(r eventlog.Record, what fact.Fact) {
	own := r.Agent == f.session
	switch what := what.(type) {
	case *fact.RunRequested:
		switch {
		case own && what.RunID == f.run:
			f.begin(what)
		case own && f.begun: // its node died, and another request has continued the session
			f.end(statusIncomplete, "interrupted", what.Timestamp)
		}
	case *fact.RunClaimed:
		if f.begun && own {
			f.claim()
		}
	case *fact.ModelTurn:
		if f.begun {
			f.state.usage.add(what.Usage)
			if own {
				f.claim()
				f.state.stop = what.StopReason
				f.commit()
			}
		}
	case *fact.CallSuspended:
		if f.begun && what.Kind == fact.PendingClient {
			f.waiting[what.ToolCallID] = true
		}
	case *eventlog.Truncated:
		switch {
		case !f.begun:
		case what.AfterSequence > 0: // the session went back
			f.end(statusIncomplete, "interrupted", what.Timestamp)
		default:
			f.takeBack(what.Ranges)
		}
	case *fact.RunEnded:
		if f.begun && own && what.RunID == f.run {
			f.runEnded(what)
		}
	}
}

func (f *folder) begin(what *fact.RunRequested) {
	f.begun = true
	f.state.created(what)
	for _, t := range what.Tools {
		f.tools[t.Name] = true
	}
	f.lifecycle("response.created")
	if f.state.kept.Background {
		f.lifecycle("response.queued")
	}
}

// claim notes that the run executes. A node that holds the session already, since a sub-agent of
// an earlier run works, appends no RunClaimed: the run's first step or output shows it then.
func (f *folder) claim() {
	if f.claimed {
		return
	}
	f.claimed = true
	f.state.status = statusInProgress
	f.lifecycle("response.in_progress")
}

// runEnded ends the response with its run. A run that waits for a client has completed the
// response: the client's answer is the next request.
func (f *folder) runEnded(what *fact.RunEnded) {
	switch {
	case what.Status == fact.RunFailed && what.ErrorCode == agentloop.CodeAborted:
		f.end(statusCancelled, "cancelled", what.Timestamp)
	case what.Status == fact.RunFailed:
		f.state.failure = failureOf(what.ErrorCode, what.Error)
		f.end(statusFailed, "", what.Timestamp)
	case what.Status == fact.RunStopped:
		f.end(statusIncomplete, "interrupted", what.Timestamp)
	case f.state.stop == fact.StopMaxTokens:
		f.end(statusIncomplete, "max_output_tokens", what.Timestamp)
	case f.state.stop == fact.StopContentFilter:
		f.end(statusIncomplete, "content_filter", what.Timestamp)
	default:
		f.end(statusCompleted, "", what.Timestamp)
	}
}

// end closes what is open and ends the response. There is no event of its own for a
// cancelled response: clients refuse events that they do not know.
func (f *folder) end(status, reason string, at int64) {
	for _, it := range f.items {
		if !it.done {
			it.gone = it.gone || it.kind == kindFunction
			f.finish(it, statusIncomplete)
		}
	}
	f.ended = true
	f.state.status, f.state.reason = status, reason
	name := "response.incomplete"
	switch status {
	case statusCompleted:
		f.state.completed = at
		name = "response.completed"
	case statusFailed:
		name = "response.failed"
	}
	f.lifecycle(name)
}

// commit finishes what the model has said: its answer is recorded.
func (f *folder) commit() {
	f.message, f.thought = nil, nil
	for _, it := range f.items {
		if !it.done && (it.kind == kindMessage || it.kind == kindReasoning) {
			f.finish(it, statusCompleted)
		}
	}
	for _, it := range f.items {
		if !it.done && it.kind == kindFunction {
			it.recorded = true
		}
	}
}

// takeBack discards what ranges of truncated records have begun.
func (f *folder) takeBack(ranges []eventlog.Range) {
	for _, g := range ranges {
		if g.AgentID != f.session || g.CallID != "" {
			continue // a tool is executed again, in the same item
		}
		f.message, f.thought = nil, nil
		for _, it := range f.items {
			if !it.done && !it.recorded && g.From <= it.first && it.first <= g.To && it.kind != kindMCP {
				it.gone = true
				f.finish(it, statusIncomplete)
			}
		}
	}
}

// executes reports whether a chunk shows that a node executes the run. Others, such as RunResumed, are
// appended with the request.
func executes(c eventlog.Chunk) bool {
	switch c.(type) {
	case *eventlog.StepStart, *eventlog.TextDelta, *eventlog.Thinking, *eventlog.SourceURL, *eventlog.Output,
		*eventlog.ToolArgStreamStart, *eventlog.ToolStart, *eventlog.SubAgentStart, *eventlog.ToolApprovalRequest,
		*eventlog.ToolApprovalResponse, *eventlog.ToolInputError, *eventlog.ToolEnd:
		return true
	}
	return false
}

func (f *folder) chunk(r eventlog.Record, c eventlog.Chunk) {
	own := r.Agent == f.session
	if own && executes(c) {
		f.claim()
	}
	switch c := c.(type) {
	case *eventlog.TextDelta:
		if own {
			f.text(r, c.Delta)
		}
	case *eventlog.Thinking:
		switch {
		case own && c.IsComplete:
			f.thought = nil
		case own:
			f.reason(r, c.Content)
		}
	case *eventlog.SourceURL:
		if own {
			f.cite(r, c)
		}
	case *eventlog.Output: // of an agent with an output schema
		if own {
			f.text(r, string(c.Output))
			f.commit()
		}
	case *eventlog.ToolArgStreamStart:
		f.callBegins(r, own, c)
	case *eventlog.ToolArgStreamDelta:
		f.callGrows(c)
	case *eventlog.ToolStart:
		f.callStarts(r, own, c)
	case *eventlog.SubAgentStart:
		if own {
			f.serverCall(r, c.CallID, agentloop.SubAgentPrefix+c.SubAgentType, nil)
		}
	case *eventlog.ToolApprovalRequest:
		f.asks(r, c)
	case *eventlog.ToolApprovalResponse:
		if own && c.Approved {
			f.approved(c)
		}
	case *eventlog.ToolInputError:
		if own {
			f.refused(r, c)
		}
	case *eventlog.ToolEnd:
		f.callEnds(r, own, c)
	}
}

// text adds to the message that grows, or begins one.
func (f *folder) text(r eventlog.Record, delta string) {
	f.thought = nil
	if f.message == nil {
		f.beginMessage(r)
	}
	it := f.message
	it.text = append(it.text, delta...)
	f.send("response.output_text.delta", object{
		"item_id": it.id, "output_index": it.index, "content_index": 0, "delta": delta, "logprobs": []any{},
	})
}

func (f *folder) beginMessage(r eventlog.Record) {
	f.message = f.add(r, kindMessage)
	f.send("response.content_part.added", object{
		"item_id": f.message.id, "output_index": f.message.index, "content_index": 0,
		"part": object{"type": "output_text", "text": "", "annotations": []any{}, "logprobs": []any{}},
	})
}

// reason adds to the reasoning that grows, or begins one.
func (f *folder) reason(r eventlog.Record, delta string) {
	f.message = nil
	if f.thought == nil {
		f.thought = f.add(r, kindReasoning)
		f.send("response.reasoning_summary_part.added", object{
			"item_id": f.thought.id, "output_index": f.thought.index, "summary_index": 0, "part": object{"type": "summary_text", "text": ""},
		})
	}
	it := f.thought
	it.text = append(it.text, delta...)
	f.send("response.reasoning_summary_text.delta", object{
		"item_id": it.id, "output_index": it.index, "summary_index": 0, "delta": delta,
	})
}

// cite adds a source to the message.
func (f *folder) cite(r eventlog.Record, c *eventlog.SourceURL) {
	if f.message == nil {
		f.beginMessage(r)
	}
	it, title := f.message, c.URL
	if c.Title != nil {
		title = *c.Title
	}
	at := len([]rune(string(it.text)))
	note := object{"type": "url_citation", "url": c.URL, "title": title, "start_index": at, "end_index": at}
	it.notes = append(it.notes, note)
	f.send("response.output_text.annotation.added", object{
		"item_id": it.id, "output_index": it.index, "content_index": 0, "annotation_index": len(it.notes) - 1, "annotation": note,
	})
}
