package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// knows reports whether the session has one of the messages already: a client that repeats
// it has missed the answer.
func knows(t *projector.Tree, messages []agentloop.Input) bool {
	return slices.ContainsFunc(messages, func(in agentloop.Input) bool {
		return in.MessageID != "" && slices.ContainsFunc(t.Messages, func(m projector.Message) bool {
			return m.MessageID == in.MessageID && m.Content == in.Content
		})
	})
}

// isLast returns ErrNotLast unless run, if it is not empty, is the session's last one.
func isLast(t *projector.Tree, run string) error {
	if last := t.CurrentRun(); run != "" && (last == nil || last.RunID != run || last.Deleted) {
		return agentloop.ErrNotLast
	}
	return nil
}

// mergeState drafts what a request changes of the state of a session that exists: the members
// of state, an object, replace those of the session's.
func mergeState(clock record.Clock, t *projector.Tree, agentType string, state json.RawMessage) ([]record.Draft, error) {
	if state == nil {
		return nil, nil
	}
	var next, now map[string]json.RawMessage
	if json.Unmarshal(state, &next) != nil {
		return nil, &eventlog.ValidationError{Field: "state", Reason: "must be an object"}
	}
	_ = json.Unmarshal(t.CustomState.Bytes(), &now) // an object
	var ops []eventlog.PatchOp
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if !sameJSON(now[name], next[name]) {
			ops = append(ops, eventlog.PatchOp{Op: "add", Path: "/" + pointerToken.Replace(name), Value: next[name]})
		}
	}
	if len(ops) == 0 {
		return nil, nil
	}
	if _, _, err := t.CustomState.Patch(ops, t.PatchWorkLeft()); err != nil {
		return nil, &eventlog.ValidationError{Field: "state", Reason: err.Error()}
	}
	base := clock.ChunkBase(&t.Session)
	base.AgentType = cmp.Or(base.AgentType, agentType)
	return []record.Draft{{Chunk: &eventlog.StatePatch{Patches: ops, Base: base}}}, nil
}

// pointerToken escapes a member's name for a JSON Pointer.
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

// sameJSON reports whether two values are equal apart from white space and the order of
// members.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return a != nil && patch.DecodeExact(a, &x) == nil && patch.DecodeExact(b, &y) == nil && reflect.DeepEqual(x, y)
}

// WithMayUse returns a context in which the loop changes, rolls back and forks sessions only in states for
// which may returns no error, else the request fails with that error: whose a session is may have changed
// since the caller has looked, if it was erased and its id used again. It must be pure.
func WithMayUse(ctx context.Context, may func(*projector.Tree) error) context.Context {
	return request.WithMayUse(ctx, may)
}

// Started names the run that a request began or found.
type Started = request.Started
