package control

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
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/projector/readmodel"
)

// memoryScopes are the kinds of scopes.
var memoryScopes = []eventlog.MemoryScopeKind{eventlog.MemoryOfUser, eventlog.MemoryOfAgent, eventlog.MemoryOfSession}

// queryScope returns the scope that the query names by scope, id and tenant.
func (s *Routes) queryScope(r *web.Request) (eventlog.MemoryScope, error) {
	q := r.Query
	scope := eventlog.MemoryScope{Kind: web.OneOf(q, "scope", memoryScopes), ID: q.Word("id"), Tenant: q.Word("tenant")}
	if *q.Err != nil {
		return scope, *q.Err
	}
	return s.reach(r, scope)
}

// reach checks that the caller may use a scope, and returns it with the caller's tenant. A
// session's scope needs the operation on that session, any other scope needs it on all
// sessions. A caller that is bound to a user reaches this user's scope only, in its tenant
// if it has one; a caller that is bound to a tenant alone reaches no user's scope. A
// session that does not exist has no memories, and can't get any.
func (s *Routes) reach(r *web.Request, scope eventlog.MemoryScope) (eventlog.MemoryScope, error) {
	switch {
	case scope.Kind == "":
		return scope, web.Invalid("scope", "is required")
	case scope.ID == "":
		return scope, web.Invalid("id", "is required")
	}
	caller := auth.CallerOf(r.Context())
	session, validate, only := auth.AllSessions, eventlog.ValidateID, caller.OnlyUser()
	switch {
	case scope.Kind == eventlog.MemoryOfSession:
		session, validate = scope.ID, eventlog.ValidateClientSessionID
		r.Out.Session = session
	case scope.Kind == eventlog.MemoryOfUser && only != "":
		session = "" // the user decides, not the sessions
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](validate(scope.ID)); bad {
		return scope, web.Invalid("id", problem.Reason)
	}
	own := caller.OnlyTenant()
	if scope.Tenant != "" && own != "" && scope.Tenant != own {
		return scope, auth.ErrForbidden
	}
	if scope.Kind == eventlog.MemoryOfUser {
		scope.Tenant = cmp.Or(scope.Tenant, own)
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](scope.Validate()); bad && problem.Field == "tenant" {
		return scope, web.Invalid("tenant", problem.Reason)
	}
	err := r.Allow(r.Op, session)
	switch {
	case err != nil:
	case scope.Kind == eventlog.MemoryOfUser && only != "" && scope.ID != only:
		err = auth.ErrOtherUser
	case s.manager == nil:
		err = ErrNoMemories
	case scope.Kind == eventlog.MemoryOfSession && caller.Bound():
		err = r.Own(scope.ID, false)
	case scope.Kind == eventlog.MemoryOfSession:
		_, err = s.log.Head(r.Context(), scope.ID)
	}
	return scope, err
}

// Memories answers GET /memories: a scope's memories, newest first or, with q, the best
// matches.
func (s *Routes) Memories(w http.ResponseWriter, r *web.Request) error {
	scope, err := s.queryScope(r)
	if err != nil {
		return err
	}
	if r.Query.Values.Has("q") {
		return s.searchMemories(w, r, scope)
	}
	page := r.Query.Page()
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	found, err := s.manager.List(r.Context(), scope, page)
	if err != nil {
		return err
	}
	return r.OK(w, api.FoundMemories{Listing: api.Listing[api.FoundMemory]{
		Page:  web.MapPage(found.Value, func(m readmodel.Memory) api.FoundMemory { return api.FoundMemory{Memory: m} }),
		Fresh: web.Shown(found.Fresh),
	}})
}

func (s *Routes) searchMemories(w http.ResponseWriter, r *web.Request, scope eventlog.MemoryScope) error {
	q := memory.Query{Scope: scope, Text: r.Query.Values.Get("q"), Limit: r.Query.Integer("limit", memory.DefaultHits, 1, memory.MaxHits)}
	if r.Query.Values.Has("offset") {
		r.Query.Fail(web.Invalid("offset", "is for listings: a search has one page"))
	}
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	found, err := s.manager.Search(r.Context(), q)
	if err != nil {
		return err
	}
	page := api.Page[api.FoundMemory]{Items: make([]api.FoundMemory, len(found.Hits)), Total: len(found.Hits), Limit: q.Limit}
	for i, hit := range found.Hits {
		page.Items[i] = api.FoundMemory(hit)
	}
	return r.OK(w, api.FoundMemories{Listing: api.Listing[api.FoundMemory]{Page: page, Fresh: web.Shown(found.Fresh)}, WordsOnly: found.WordsOnly})
}

// SaveMemory answers POST /memories. With an idempotency key it is saved once.
func (s *Routes) SaveMemory(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryScopeKind(body.Word("scope")), ID: body.Word("id"), Tenant: body.OptText("tenant")}
	if !slices.Contains(memoryScopes, scope.Kind) {
		body.Fail("scope", fmt.Sprintf("must be one of %v", memoryScopes))
	}
	if *body.Err != nil {
		return *body.Err
	}
	if scope, err = s.reach(r, scope); err != nil {
		return err
	}
	d := memory.Draft{Scope: scope, Content: body.Text("content"), Tags: tagsOf(body), Metadata: body.OptObject("metadata")}
	if *body.Err != nil {
		return *body.Err
	}
	pre, err := parsePreconditions(r.Header)
	if err != nil {
		return err
	}
	if pre.expectedGiven {
		return web.Invalid(api.HeaderExpected, "is not for memories")
	}
	if d.Metadata, err = web.Compacted(d.Metadata); err != nil {
		return err
	}
	d.Key = pre.key
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	saved, err := s.manager.Save(ctx, d)
	if err != nil {
		return err
	}
	if saved.Content != d.Content || !slices.Equal(saved.Tags, d.Tags) || !jsondoc.Same(saved.Metadata, d.Metadata) {
		return ErrMismatch
	}
	return r.OK(w, saved)
}

// ForgetMemory answers DELETE /memories/{memoryId}.
func (s *Routes) ForgetMemory(w http.ResponseWriter, r *web.Request) error {
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(r.Name)); bad {
		return web.Invalid("memoryId", problem.Reason)
	}
	scope, err := s.queryScope(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	if err := s.manager.Forget(ctx, scope, r.Name); err != nil {
		return err
	}
	return r.OK(w, api.ForgottenMemory{MemoryID: r.Name})
}

// EraseMemories answers DELETE /memories: it erases a scope's memories for good.
func (s *Routes) EraseMemories(w http.ResponseWriter, r *web.Request) error {
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
	r.Audit("memories erased")
	if e.Pending {
		return r.Respond(w, http.StatusAccepted, api.ErasedMemories{Scope: scope, Pending: true})
	}
	return r.OK(w, api.ErasedMemories{Scope: scope})
}

// ProcessMemories answers POST /memories/process: it computes missing vectors.
func (s *Routes) ProcessMemories(w http.ResponseWriter, r *web.Request) error {
	if err := r.Allow(r.Op, auth.AllSessions); err != nil {
		return err
	}
	if _, err := r.ReadObject(w); err != nil {
		return err
	}
	if s.manager == nil {
		return ErrNoMemories
	}
	done, err := s.manager.ProcessUnembedded(r.Context())
	if err != nil {
		return err
	}
	return r.OK(w, api.ProcessedMemories(done))
}
