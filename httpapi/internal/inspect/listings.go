package inspect

import (
	"cmp"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// The values of status by which listings can be filtered.
var (
	sessionStatuses = []projector.SessionStatus{
		projector.SessionActive, projector.SessionPaused, projector.SessionInterrupted, projector.SessionCompleted, projector.SessionFailed,
	}
	streamStatuses = []eventlog.StreamStatus{
		eventlog.StreamActive, eventlog.StreamWaiting, eventlog.StreamCompleted, eventlog.StreamTerminated,
	}
	runStatuses = []fact.RunStatus{
		fact.RunRunning, fact.RunCompleted, fact.RunFailed, fact.RunStopped,
		fact.RunClientTool, fact.RunChildren, fact.RunStepPartial,
	}
)

// AllRuns answers GET /runs: the runs of all sessions, newest first.
func (s *Routes) AllRuns(w http.ResponseWriter, r *web.Request) error {
	f, err := runFilter(r)
	if err != nil {
		return err
	}
	return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[api.Page[readmodel.Run]], error) {
		f.Visible = visible
		return s.readModels.Runs(r.Context(), f)
	})
}

func runFilter(r *web.Request) (readmodel.RunFilter, error) {
	q := r.Query
	f := readmodel.RunFilter{
		Paging: q.Page(), SessionID: q.SessionID("sessionId"), UserID: r.User(), Tenant: auth.CallerOf(r.Context()).OnlyTenant(),
		AgentType: q.Word("agentType"), Status: web.OneOf(q, "status", runStatuses),
	}
	f.From, f.To = q.Period()
	return f, *q.Err
}

// UsageBy answers GET /usage.
func (s *Routes) UsageBy(w http.ResponseWriter, r *web.Request) error {
	q, err := usageQuery(r)
	if err != nil {
		return err
	}
	found, err := asked(s, r, func(visible readmodel.Visible) (readmodel.Answer[readmodel.UsageReport], error) {
		q.Visible = visible
		return s.readModels.Usage(r.Context(), q)
	})
	if err != nil {
		return err
	}
	if found.Value.Rows == nil {
		found.Value.Rows = []readmodel.UsageRow{}
	}
	return r.OK(w, api.UsageReport{UsageReport: found.Value, Fresh: found.Fresh})
}

func usageQuery(r *web.Request) (readmodel.UsageQuery, error) {
	q := r.Query
	u := readmodel.UsageQuery{
		By: cmp.Or(web.OneOf(q, "by", readmodel.UsageKeys()), readmodel.ByAgent), UserID: r.User(), Tenant: auth.CallerOf(r.Context()).OnlyTenant(),
		AgentType: q.Word("agentType"), SessionID: q.SessionID("sessionId"),
	}
	u.From, u.To = q.Period()
	return u, *q.Err
}

// Search answers GET /search: messages and tool calls with all words, best matches first.
func (s *Routes) Search(w http.ResponseWriter, r *web.Request) error {
	q, err := searchQuery(r)
	if err != nil {
		return err
	}
	done, err := s.searches.Take(r.Context(), auth.CallerOf(r.Context()))
	if err != nil {
		return err
	}
	defer done()
	return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[api.Page[readmodel.Hit]], error) {
		q.Visible = visible
		return s.readModels.Search(r.Context(), q)
	})
}

func searchQuery(r *web.Request) (readmodel.SearchQuery, error) {
	q := r.Query
	f := readmodel.SearchQuery{Paging: q.Page(), Text: q.Word("q")}
	if f.Text == "" {
		q.Fail(web.Invalid("q", "is required"))
	}
	f.SessionID, f.UserID, f.Tenant = q.SessionID("sessionId"), r.User(), auth.CallerOf(r.Context()).OnlyTenant()
	f.AgentType = q.Word("agentType")
	return f, *q.Err
}

// Parked answers GET /parked: the records that could not be applied.
func (s *Routes) Parked(w http.ResponseWriter, r *web.Request) error {
	caller := auth.CallerOf(r.Context())
	f := readmodel.ParkedFilter{Paging: r.Query.Page(), UserID: caller.OnlyUser(), Tenant: caller.OnlyTenant(), SessionID: r.Query.LogID("sessionId")}
	if *r.Query.Err != nil {
		return *r.Query.Err
	}
	return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[api.Page[readmodel.Parked]], error) {
		f.Visible = visible
		return s.readModels.Parked(r.Context(), f)
	})
}
