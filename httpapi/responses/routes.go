package responses

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Options configure the routes of the Responses and Conversations APIs. The zero value means
// the documented defaults.
type Options struct {
	// DefaultAgent answers requests without a model; empty: the only agent, if there is one
	// only.
	DefaultAgent string
}

// Routes serve the Responses and Conversations APIs.
type Routes struct {
	log    eventlog.Log
	loop   *engine.Loop
	states *snapshot.Store
	logger *slog.Logger
	newID  func() string
	// deadline is how long a request waits for a run to stop.
	deadline time.Duration
	options  Options
}

// New returns the routes. newID makes ids of sessions, unique for all time.
func New(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, logger *slog.Logger, newID func() string, deadline time.Duration, o Options) *Routes {
	return &Routes{log: log, loop: loop, states: states, logger: logger, newID: newID, deadline: deadline, options: o}
}

// RequestHeaders are those that OpenAI's SDK sends from a web page.
func RequestHeaders() []string {
	return []string{
		"OpenAI-Beta", "OpenAI-Organization", "OpenAI-Project", "X-Stainless-Arch", "X-Stainless-Custom-Poll-Interval",
		"X-Stainless-Helper-Method", "X-Stainless-Lang", "X-Stainless-OS", "X-Stainless-Package-Version", "X-Stainless-Poll-Helper",
		"X-Stainless-Retry-Count", "X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Timeout",
	}
}

// place is a run of a session that a request names, and the session's state.
type place struct {
	session string
	tree    *projector.Tree
	run     *projector.Run
}

// find returns the run that the id of a response names, or missing if the caller can't know
// of it: there is none, it was deleted or not to be stored, or it is another user's.
func (s *Routes) find(r *web.Request, id string, missing *Problem) (place, error) {
	p, err := s.findDeleted(r, id, missing)
	if err == nil && p.run.Deleted {
		return place{}, missing
	}
	return p, err
}

// findDeleted is find, also for a response that was deleted.
func (s *Routes) findDeleted(r *web.Request, id string, missing *Problem) (place, error) {
	session, run, ok := parseResponseID(id)
	if !ok {
		return place{}, missing
	}
	t, err := s.session(r, session, missing)
	if err != nil {
		return place{}, err
	}
	found := t.RunOf(run)
	if found == nil || found.Truncated || t.Ephemeral && found == t.CurrentRun() {
		return place{}, missing
	}
	return place{session: session, tree: t, run: found}, nil
}

// session returns the state of a session that the caller may use, or missing.
func (s *Routes) session(r *web.Request, session string, missing *Problem) (*projector.Tree, error) {
	err := r.AuthorizeAs(session, false)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	t, err := s.states.Head(r.Context(), session)
	if errors.Is(err, eventlog.ErrSessionNotFound) || err == nil && !auth.CallerOf(r.Context()).MayUse(t) { // since it was authorized
		return nil, missing
	}
	return t, err
}

// Retrieve answers GET /v1/responses/{id}: the response as it is now or, with stream=true, its
// events after starting_after, as they come.
func (s *Routes) Retrieve(w http.ResponseWriter, r *web.Request) error {
	after := -1
	if n, given := r.Query.Number("starting_after"); given {
		after = int(min(n, 1<<31))
	}
	streams := r.Query.Values.Get("stream") == "true"
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	if body, err := io.ReadAll(r.Body); err == nil && len(body) > 0 { // the SDK for Go has it there
		o, err := web.ParseObject(body)
		if err != nil {
			return err
		}
		if streams = flag(o, "stream", streams); *o.Err != nil {
			return *o.Err
		}
	}
	if after >= 0 && !streams {
		return invalid("starting_after", "starting_after goes with stream=true.")
	}
	p, err := s.find(r, r.Name, noResponse(r.Name))
	if err != nil {
		return err
	}
	if streams {
		return s.stream(w, r, p, after)
	}
	f, err := s.now(r.Context(), p)
	if err != nil {
		return err
	}
	return r.OK(w, f.response())
}

// Cancel answers POST /v1/responses/{id}/cancel. A response that has ended stays as it is.
func (s *Routes) Cancel(w http.ResponseWriter, r *web.Request) error {
	p, err := s.find(r, r.Name, noResponse(r.Name))
	if err != nil {
		return err
	}
	f, err := s.now(r.Context(), p)
	if err != nil {
		return err
	}
	if !f.state.kept.Background {
		return &Problem{Status: 400, Message: "Cannot cancel a synchronous response: only those with background: true can be cancelled.", Code: "not_cancellable"}
	}
	if f.ended {
		return r.OK(w, f.response())
	}
	ctx, cancel := r.Detached()
	defer cancel()
	if err := s.loop.AbortRun(ctx, p.session, p.run.RunID, "the response was cancelled"); err != nil {
		return err
	}
	wait, stop := context.WithTimeout(ctx, s.deadline)
	defer stop()
	f, err = s.await(wait, p)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) { // it stops as soon as it can
		return err
	}
	return r.OK(w, f.response())
}

// Delete answers DELETE /v1/responses/{id}. If nothing else is in its session, the session is
// erased; else the response is not found any more, and its messages stay in the session.
func (s *Routes) Delete(w http.ResponseWriter, r *web.Request) error {
	p, err := s.findDeleted(r, r.Name, noResponse(r.Name))
	if err != nil {
		return err
	}
	f, err := s.now(r.Context(), p)
	if err != nil {
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	again := p.run.Deleted // and perhaps its session could not be erased then
	if !again {
		// No request continues the response from then on: what follows it is in the session by now.
		if err := s.loop.Admin.DeleteRun(ctx, p.session, p.run.RunID); err != nil {
			return err
		}
		if p.tree, err = s.states.Head(ctx, p.session); err != nil {
			return err
		}
	}
	others, err := s.others(ctx, p, f)
	status := http.StatusOK
	switch {
	case err != nil:
		return err
	case others && again:
		return noResponse(r.Name)
	case !others:
		if status, err = s.erase(ctx, p.tree); err != nil {
			return err
		}
	}
	r.Audit("response deleted")
	return r.Respond(w, status, object{"id": r.Name, "object": "response.deleted", "deleted": true})
}

// erase erases the session that a state is of, but no later one of its id. It returns the status of the answer, which
// is that of DELETE /sessions/{id}: 202 if bytes may be left.
func (s *Routes) erase(ctx context.Context, t *projector.Tree) (status int, err error) {
	e, err := s.loop.Admin.Erase(eventlog.WithHead(ctx, t.SessionID, t.Head), t.SessionID)
	if e.Pending && (err == nil || errors.Is(err, context.DeadlineExceeded)) { // it has begun, for good
		return http.StatusAccepted, nil
	}
	return http.StatusOK, err
}

// others reports whether a session has more than one response: other runs, or items that were
// added after it.
func (s *Routes) others(ctx context.Context, p place, f *folder) (bool, error) {
	isOther := func(run projector.Run) bool { return !run.Truncated && !run.Deleted && run.RunID != p.run.RunID }
	if f.state.kept.Conversation || slices.ContainsFunc(p.tree.Runs, isOther) {
		return true, nil
	}
	if !f.ended { // nothing is added to a session that runs
		return false, nil
	}
	end, err := s.endOf(ctx, p)
	return slices.ContainsFunc(p.tree.Messages, func(m projector.Message) bool { return m.Sequence > end && !m.Hidden() }), err
}

// InputItems answers GET /v1/responses/{id}/input_items.
func (s *Routes) InputItems(w http.ResponseWriter, r *web.Request) error {
	page, err := pageOf(r.Query)
	if err != nil {
		return err
	}
	p, err := s.find(r, r.Name, noResponse(r.Name))
	if err != nil {
		return err
	}
	if err := r.LargeAnswer(p.tree.Bytes); err != nil { // all items are made, however few are shown
		return err
	}
	all, err := s.history(r.Context(), p.session, p.tree)
	if err != nil {
		return err
	}
	var items []object
	for _, it := range all {
		if it.input && it.run == p.run.RunID {
			items = append(items, it.shown)
		}
	}
	list, err := page.of(items)
	if err != nil {
		return err
	}
	return r.OK(w, list)
}
