package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector/readmodel"
)

// memoryScopes are whose memories there are.
var memoryScopes = []eventlog.MemoryScopeKind{eventlog.MemoryOfUser, eventlog.MemoryOfAgent, eventlog.MemoryOfSession}

// queryScope is the scope that a request names as scope and id.
func (s *controlRoutes) queryScope(r *request) (eventlog.MemoryScope, error) {
	kind, err := oneOf(r.query, "scope", memoryScopes)
	if err != nil {
		return eventlog.MemoryScope{}, err
	}
	id, err := r.query.word("id")
	if err != nil {
		return eventlog.MemoryScope{}, err
	}
	tenant, err := r.query.word("tenant")
	if err != nil {
		return eventlog.MemoryScope{}, err
	}
	return s.reach(r, eventlog.MemoryScope{Kind: kind, ID: id, Tenant: tenant})
}

// reach lets a request at a scope: a session's if its caller may do the
// operation on that session, any other one if it may on all. A caller that is
// bound to a user reaches this user's, and no agent's; one that is bound to a
// tenant alone reaches no user's. One that is bound to both reaches those that the
// user has in the tenant. A session that is not there has no memories, and gets none.
func (s *controlRoutes) reach(r *request, scope eventlog.MemoryScope) (eventlog.MemoryScope, error) {
	switch {
	case scope.Kind == "":
		return scope, invalid("scope", "is required")
	case scope.ID == "":
		return scope, invalid("id", "is required")
	}
	caller := auth.CallerOf(r.Context())
	session, validate, only := auth.AllSessions, eventlog.ValidateID, caller.OnlyUser()
	switch {
	case scope.Kind == eventlog.MemoryOfSession:
		session, validate = scope.ID, eventlog.ValidateClientSessionID
		r.out.session = session
	case scope.Kind == eventlog.MemoryOfUser && only != "":
		session = "" // the user decides, not the sessions
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](validate(scope.ID)); bad {
		return scope, invalid("id", problem.Reason)
	}
	own := caller.OnlyTenant()
	if scope.Tenant != "" && own != "" && scope.Tenant != own {
		return scope, auth.ErrForbidden
	}
	if scope.Kind == eventlog.MemoryOfUser {
		scope.Tenant = cmp.Or(scope.Tenant, own)
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](scope.Validate()); bad && problem.Field == "tenant" {
		return scope, invalid("tenant", problem.Reason)
	}
	err := r.allow(r.op, session)
	switch {
	case err != nil:
	case scope.Kind == eventlog.MemoryOfUser && only != "" && scope.ID != only:
		err = auth.ErrOtherUser
	case s.manager == nil:
		err = errNoMemories
	case scope.Kind == eventlog.MemoryOfSession && caller.Bound():
		err = r.own(scope.ID, false)
	case scope.Kind == eventlog.MemoryOfSession:
		_, err = s.log.Head(r.Context(), scope.ID)
	}
	return scope, err
}

// memories answers GET /memories: a scope's, newest first or, with q, those that
// fit best.
func (s *controlRoutes) memories(w http.ResponseWriter, r *request) error {
	scope, err := s.queryScope(r)
	if err != nil {
		return err
	}
	if r.query.values.Has("q") {
		return s.searchMemories(w, r, scope)
	}
	page, err := r.query.paging()
	if err != nil {
		return err
	}
	found, err := s.manager.List(r.Context(), scope, page)
	if err != nil {
		return err
	}
	return r.ok(w, api.FoundMemories{Listing: api.Listing[api.FoundMemory]{
		Page:  mapPage(found.Value, func(m readmodel.Memory) api.FoundMemory { return api.FoundMemory{Memory: m} }),
		Fresh: shown(found.Fresh),
	}})
}

func (s *controlRoutes) searchMemories(w http.ResponseWriter, r *request, scope eventlog.MemoryScope) error {
	q := memory.Query{Scope: scope, Text: r.query.values.Get("q")}
	var err error
	if q.Limit, err = r.query.integer("limit", memory.DefaultHits, 1, memory.MaxHits); err != nil {
		return err
	}
	if r.query.values.Has("offset") {
		return invalid("offset", "is for listings: a search has one page")
	}
	found, err := s.manager.Search(r.Context(), q)
	if err != nil {
		return err
	}
	page := api.Page[api.FoundMemory]{Items: make([]api.FoundMemory, len(found.Hits)), Total: len(found.Hits), Limit: q.Limit}
	for i, hit := range found.Hits {
		page.Items[i] = api.FoundMemory(hit)
	}
	return r.ok(w, api.FoundMemories{Listing: api.Listing[api.FoundMemory]{Page: page, Fresh: shown(found.Fresh)}, WordsOnly: found.WordsOnly})
}

// saveMemory answers POST /memories. With an idempotency key it is saved once.
func (s *controlRoutes) saveMemory(w http.ResponseWriter, r *request) error {
	body, err := r.readObject(w)
	if err != nil {
		return err
	}
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryScopeKind(body.word("scope")), ID: body.word("id"), Tenant: body.optText("tenant")}
	if !slices.Contains(memoryScopes, scope.Kind) {
		body.fail("scope", fmt.Sprintf("must be one of %v", memoryScopes))
	}
	if *body.err != nil {
		return *body.err
	}
	if scope, err = s.reach(r, scope); err != nil {
		return err
	}
	d := memory.Draft{Scope: scope, Content: body.text("content"), Tags: tagsOf(body), Metadata: body.optObject("metadata")}
	if *body.err != nil {
		return *body.err
	}
	pre, err := parsePreconditions(r.Header)
	if err != nil {
		return err
	}
	if pre.expectedGiven {
		return invalid(api.HeaderExpected, "is not for memories")
	}
	if d.Metadata, err = compacted(d.Metadata); err != nil {
		return err
	}
	d.Key = pre.key
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	saved, err := s.manager.Save(ctx, d)
	if err != nil {
		return err
	}
	if saved.Content != d.Content || !slices.Equal(saved.Tags, d.Tags) || !sameJSON(saved.Metadata, d.Metadata) {
		return errMismatch
	}
	return r.ok(w, saved)
}

// forgetMemory answers DELETE /memories/{memoryId}.
func (s *controlRoutes) forgetMemory(w http.ResponseWriter, r *request) error {
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(r.name)); bad {
		return invalid("memoryId", problem.Reason)
	}
	scope, err := s.queryScope(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	if err := s.manager.Forget(ctx, scope, r.name); err != nil {
		return err
	}
	return r.ok(w, api.ForgottenMemory{MemoryID: r.name})
}

// eraseMemories answers DELETE /memories: every byte of a scope's.
func (s *controlRoutes) eraseMemories(w http.ResponseWriter, r *request) error {
	scope, err := s.queryScope(r)
	if err != nil {
		return err
	}
	e, err := s.untilErased(r, func(ctx context.Context) (eventlog.Erasure, error) { return s.manager.Erase(ctx, scope) })
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		return readmodel.ErrNoMemory
	case err != nil:
		return err
	}
	r.audit("memories erased")
	if e.Pending {
		return r.respond(w, http.StatusAccepted, api.ErasedMemories{Scope: scope, Pending: true})
	}
	return r.ok(w, api.ErasedMemories{Scope: scope})
}

// processMemories answers POST /memories/process: vectors for what has none.
func (s *controlRoutes) processMemories(w http.ResponseWriter, r *request) error {
	if err := r.allow(r.op, auth.AllSessions); err != nil {
		return err
	}
	if _, err := r.readObject(w); err != nil {
		return err
	}
	if s.manager == nil {
		return errNoMemories
	}
	done, err := s.manager.ProcessUnembedded(r.Context())
	if err != nil {
		return err
	}
	return r.ok(w, api.ProcessedMemories(done))
}
