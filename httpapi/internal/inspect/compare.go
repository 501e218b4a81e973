package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
)

// pointOf reads the parameters that name a session and a sequence.
func pointOf(q web.Query, name string) point {
	m := point{session: q.SessionID(name)}
	if m.session == "" {
		q.Fail(web.Invalid(name, "is required"))
	}
	m.at, m.given = q.Number(name + "At")
	return m
}

// Compare answers GET /compare?a=&aAt=n&b=&bAt=m, at the heads by default. The
// caller must be allowed on both sessions.
func (s *Routes) Compare(w http.ResponseWriter, r *web.Request) error {
	c, err := s.comparison(r)
	if err != nil {
		return err
	}
	return r.OK(w, c)
}

// comparison compares two points when it is the caller's turn. The turn includes the
// authorization, since to load a large state costs as much as to compare it.
func (s *Routes) comparison(r *web.Request) (api.Comparison, error) {
	ctx := r.Context()
	if err := r.AnswerIn(s.Diffs); err != nil {
		return api.Comparison{}, err
	}
	for _, name := range compareNames {
		if id := r.Query.Values.Get(name); id != "" {
			if err := r.Authorize(id); err != nil {
				return api.Comparison{}, err
			}
		}
	}
	var points [2]point
	for i, name := range compareNames {
		points[i] = pointOf(r.Query, name)
	}
	if *r.Query.Err != nil {
		return api.Comparison{}, *r.Query.Err
	}
	var sides [2]api.Compared
	var trees [2]*projector.Tree
	var err error
	for i, m := range points {
		if trees[i], err = s.stateAt(ctx, &m); err != nil {
			return api.Comparison{}, err
		}
		if sides[i], err = s.compared(ctx, m, trees[i]); err != nil {
			return api.Comparison{}, err
		}
	}
	a, b := trees[0], trees[1]
	patch, err := patchOf(ctx, customState(a), customState(b))
	if err != nil {
		return api.Comparison{}, err
	}
	c := api.Comparison{A: sides[0], B: sides[1], Common: common(a.Messages, b.Messages), Patch: patch}
	switch {
	case b.ForkedFrom != nil && b.ForkedFrom.SessionID == c.A.SessionID:
		c.ForkedFrom = b.ForkedFrom
	case a.ForkedFrom != nil && a.ForkedFrom.SessionID == c.B.SessionID:
		c.ForkedFrom = a.ForkedFrom
	}
	return c, nil
}

// compareNames are the parameters that name the sessions of GET /compare.
var compareNames = [2]string{"a", "b"}

// customState returns the custom state, or {} for a session without records.
func customState(t *projector.Tree) json.RawMessage {
	if t.CustomState.IsZero() {
		return json.RawMessage("{}")
	}
	return t.CustomState.Bytes()
}

// compared describes a session at a point whose state is t.
func (s *Routes) compared(ctx context.Context, m point, t *projector.Tree) (api.Compared, error) {
	c := api.Compared{
		SessionID: m.session, Sequence: m.at, Status: t.Status, AgentType: t.AgentType, Messages: t.Messages, ToolCalls: callsOf(t),
		Spent: s.prices.spent(new(projector.Tree), t), Steps: []projector.StepTime{},
	}
	if t.Head == 0 {
		c.Messages = []projector.Message{}
		return c, nil
	}
	steps, err := t.StepTimes(s.log.Read(ctx, m.session, 0, t.Head))
	if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok && trimmed.Floor < t.Head {
		steps, err = t.StepTimes(s.log.Read(ctx, m.session, trimmed.Floor, t.Head)) // what retention has left
	}
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
		return c, nil
	}
	if steps != nil {
		c.Steps = steps
	}
	return c, err
}

// common returns how many messages at the front are the same.
func common(a, b []projector.Message) int {
	n := 0
	for n < min(len(a), len(b)) && saysTheSame(a[n], b[n]) {
		n++
	}
	return n
}

// saysTheSame compares two messages as a person or a model reads them.
func saysTheSame(a, b projector.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Hidden() == b.Hidden() && slices.Equal(a.Files, b.Files) &&
		a.ToolName == b.ToolName && a.Error == b.Error && jsondoc.Same(a.Result, b.Result) &&
		slices.EqualFunc(a.Parts, b.Parts, func(p, q fact.TurnPart) bool {
			return p.Reasoning == q.Reasoning && p.Text == q.Text && sameValue(p.File, q.File) && sameSource(p.Source, q.Source) &&
				(p.ToolCall == nil) == (q.ToolCall == nil) &&
				(p.ToolCall == nil || p.ToolCall.Name == q.ToolCall.Name && jsondoc.Same(p.ToolCall.Arguments, q.ToolCall.Arguments))
		})
}

func sameValue[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// sameSource compares sources without the ids that their turns have given them.
func sameSource(a, b *fact.Source) bool {
	if a == nil || b == nil {
		return a == b
	}
	p, q := *a, *b
	p.ID, q.ID = "", ""
	return p == q
}
