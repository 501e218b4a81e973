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
	d, err := s.stateDiff(r.Context(), r.session, from, to, only == onlySpent)
	if err != nil {
		return err
	}
	if only == onlySpent {
		return s.ok(w, d.DiffSpent)
	}
	return s.ok(w, d)
}

// stateDiff compares a session with itself when it is the caller's turn: to load large
// states takes as much as to compare them.
func (s *Server) stateDiff(ctx context.Context, session string, from, to uint64, onlySpent bool) (d StateDiff, err error) {
	done, err := s.diffs.take(ctx, CallerOf(ctx))
	if err != nil {
		return d, err
	}
	defer done()
	before, err := s.states.At(ctx, session, from)
	if err != nil {
		return d, err
	}
	after, err := s.states.At(ctx, session, to)
	if err != nil {
		return d, err
	}
	d.DiffSpent = DiffSpent{from, to, s.spent(before, after)}
	if onlySpent {
		return d, nil
	}
	d.Messages, d.ToolCalls = []projector.Message{}, callChanges(before, after)
	d.Patch, err = patchOf(ctx, projector.StateOf(before), projector.StateOf(after))
	for _, m := range after.Messages {
		if m.Sequence > from { // none does if to lies before it
			d.Messages = append(d.Messages, m)
		}
	}
	return d, err
}

// patchOf returns the operations that turn the JSON of one value into that of
// another.
func patchOf(ctx context.Context, before, after any) ([]eventlog.PatchOp, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, turnPatience, errAllBusy)
	defer cancel()
	var docs [2][]byte
	for i, v := range []any{before, after} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var err error
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
