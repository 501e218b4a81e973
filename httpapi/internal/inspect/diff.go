package inspect

import (
	"context"
	"fmt"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
)

// onlySpent asks for an [api.DiffSpent] only: the rest grows with the conversation.
const onlySpent = "spent"

// Diff answers GET /sessions/{id}/diff?from=n&to=m, by default from 0 to the head. If from
// is after to, the patch leads back. With only=spent the answer is an [api.DiffSpent].
func (s *Routes) Diff(w http.ResponseWriter, r *web.Request) error {
	from, _ := r.Query.Number("from")
	to, given := r.Query.Number("to")
	only, err := web.OneOf(r.Query, "only", []string{onlySpent}), *r.Query.Err
	if err == nil && !given {
		to, err = s.log.Head(r.Context(), r.Session)
	}
	if err != nil {
		return err
	}
	// The turn includes loading the states, which costs as much as to compare them.
	if err := r.AnswerIn(s.Diffs); err != nil {
		return err
	}
	d, err := s.stateDiff(r.Context(), r.Session, from, to, only == onlySpent)
	if err != nil {
		return err
	}
	if only == onlySpent {
		return r.OK(w, d.DiffSpent)
	}
	return r.OK(w, d)
}

// stateDiff compares two states of a session.
func (s *Routes) stateDiff(ctx context.Context, session string, from, to uint64, onlySpent bool) (d api.StateDiff, err error) {
	before, err := s.states.At(ctx, session, from)
	if err != nil {
		return d, err
	}
	after, err := s.states.At(ctx, session, to)
	if err != nil {
		return d, err
	}
	d.DiffSpent = api.DiffSpent{From: from, To: to, Spent: s.prices.spent(before, after)}
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
	ctx, cancel := context.WithTimeoutCause(ctx, web.TurnPatience, web.ErrAllBusy)
	defer cancel()
	var docs [2][]byte
	for i, v := range []any{before, after} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var err error
		if docs[i], err = eventlog.Marshal(v); err != nil {
			return nil, fmt.Errorf("httpapi: diff: %w", err)
		}
	}
	return jsondoc.Diff(ctx, docs[0], docs[1])
}
