package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
)

// DiffSpent is what was used and how long it took between two sequences: by the
// whole tree, what a rollback has truncated included. It is negative on the way
// back.
type DiffSpent struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Spent
}

// StateDiff is the answer of GET /sessions/{id}/diff.
type StateDiff struct {
	DiffSpent
	// Patch turns the state at From into the state at To, as GET
	// /sessions/{id}/state shows them (RFC 6902). It is about the whole state:
	// messages, runs and sub-agents are in it too.
	Patch []eventlog.PatchOp `json:"patch"`
	// Messages are those of the session itself that are in the state at To and
	// came behind From; none if that lies before it.
	Messages []projector.Message `json:"messages"`
	// ToolCalls are those of the tree that have come further, or back.
	ToolCalls []CallChange `json:"toolCalls"`
}

// onlySpent asks for a [DiffSpent]: the rest grows with the conversation.
const onlySpent = "spent"

// diff answers GET /sessions/{id}/diff?from=n&to=m, by default from before
// everything and up to the head. From may lie behind to: then the patch leads
// back. With only=spent it is a [DiffSpent].
func (s *Server) diff(w http.ResponseWriter, r *request) error {
	from, _, err := r.query.number("from")
	if err != nil {
		return err
	}
	to, given, err := r.query.number("to")
	if err != nil {
		return err
	}
	only, err := oneOf(r.query, "only", []string{onlySpent})
	if err != nil {
		return err
	}
	if !given {
		if to, err = s.log.Head(r.Context(), r.session); err != nil {
			return err
		}
	}
	before, err := s.states.At(r.Context(), r.session, from)
	if err != nil {
		return err
	}
	after, err := s.states.At(r.Context(), r.session, to)
	if err != nil {
		return err
	}
	used := DiffSpent{from, to, s.spent(before, after)}
	if only == onlySpent {
		return s.ok(w, used)
	}
	d := StateDiff{DiffSpent: used, Messages: []projector.Message{}, ToolCalls: callChanges(before, after)}
	d.Patch, err = s.patchOf(r.Context(), func() (_, _ any) { return projector.StateOf(before), projector.StateOf(after) })
	if err != nil {
		return err
	}
	for _, m := range after.Messages {
		if m.Sequence > from { // none does if to lies before it
			d.Messages = append(d.Messages, m)
		}
	}
	return s.ok(w, d)
}

// patchOf returns the operations that turn the JSON of one value into that of
// another. The values are made when it is the diff's turn.
func (s *Server) patchOf(ctx context.Context, values func() (before, after any)) ([]eventlog.PatchOp, error) {
	done, err := s.diffs.take(ctx, CallerOf(ctx))
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, turnPatience, errAllBusy)
	defer cancel()
	var docs [2][]byte
	before, after := values()
	for i, v := range []any{before, after} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if docs[i], err = marshal(v); err != nil {
			return nil, fmt.Errorf("httpapi: diff: %w", err)
		}
	}
	return jsondoc.Diff(ctx, docs[0], docs[1])
}

// decodeExact keeps numbers as they are written.
func decodeExact(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}
