package agui

import (
	"iter"
	"maps"
	"slices"

	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// again begins the stream again for a new client, in the session's state: what has come is in
// snapshots, and what is open begins again. If the run has ended, it ends again.
func (f *folder) again(t *projector.Tree) {
	f.started(t)
	f.send(typeStateSnapshot, object{"snapshot": t.CustomState.Bytes()})
	f.send(typeMessagesSnapshot, object{"messages": append(messagesOf(t), f.partial(t)...)})
	for _, call := range slices.Sorted(maps.Keys(f.children)) {
		f.sendChild(f.children[call])
	}
	if f.step != "" {
		f.send(typeStepStarted, object{"stepName": f.step})
	}
	if f.thought {
		f.openThought()
	}
	if f.text {
		f.send(typeTextStart, object{"messageId": f.answer, "role": "assistant"})
	}
	for _, id := range f.openCalls() {
		f.send(typeCallStart, object{"toolCallId": id, "toolCallName": f.calls[id].name, "parentMessageId": f.answer})
	}
	if f.end != nil {
		f.send(f.end["type"].(string), f.end)
	}
}

// standing yields the stream of a thread that has a conversation and no run, such as a fork. Its
// events have no ids: there is nothing to rejoin.
func standing(t *projector.Tree) iter.Seq2[web.Event, error] {
	return func(yield func(web.Event, error) bool) {
		f := newFolder(t.SessionID, t.SessionID, nil)
		f.name = t.SessionID
		f.end = object{"type": typeRunFinished, "threadId": t.SessionID, "runId": t.SessionID, "outcome": f.outcome(t)}
		f.prelude(t, web.Position{}, yield)
	}
}

// partial returns what has come of an answer that is not recorded.
func (f *folder) partial(t *projector.Tree) []object {
	if f.begun == 0 || t.Turn == nil || t.Turn.Step == nil || t.Turn.Step.Recorded {
		return nil
	}
	return answer(f.answer, partsOf(t.Turn.Step.Partial))
}
