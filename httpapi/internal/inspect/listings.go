package inspect

import (
	"net/http"

	"github.com/helixd/helixd/eventlog"
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
	runStatuses = []eventlog.RunStatus{
		eventlog.RunRunning, eventlog.RunCompleted, eventlog.RunFailed, eventlog.RunStopped,
		eventlog.RunClientTool, eventlog.RunChildren, eventlog.RunStepPartial,
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
		found, err := s.readModels.Runs(r.Context(), f)
		return readmodel.Answer[api.Page[readmodel.Run]]{Value: web.PageOf(found.Value), Fresh: found.Fresh}, err
	})
}

func runFilter(r *web.Request) (f readmodel.RunFilter, err error) {
	q := r.Query
	if f.Paging, err = q.Paging(); err != nil {
		return f, err
	}
	if f.SessionID, err = q.SessionID("sessionId"); err != nil {
		return f, err
	}
	if f.UserID, err = r.User(); err != nil {
		return f, err
	}
	f.Tenant = auth.CallerOf(r.Context()).OnlyTenant()
	if f.AgentType, err = q.Word("agentType"); err != nil {
		return f, err
	}
	if f.Status, err = web.OneOf(q, "status", runStatuses); err != nil {
		return f, err
	}
	f.From, f.To, err = q.Period()
	return f, err
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

func usageQuery(r *web.Request) (u readmodel.UsageQuery, err error) {
	q := r.Query
	if u.By, err = web.OneOf(q, "by", readmodel.UsageKeys()); err != nil {
		return u, err
	}
	if u.By == "" {
		u.By = readmodel.ByAgent
	}
	if u.UserID, err = r.User(); err != nil {
		return u, err
	}
	u.Tenant = auth.CallerOf(r.Context()).OnlyTenant()
	if u.AgentType, err = q.Word("agentType"); err != nil {
		return u, err
	}
	if u.SessionID, err = q.SessionID("sessionId"); err != nil {
		return u, err
	}
	u.From, u.To, err = q.Period()
	return u, err
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
		found, err := s.readModels.Search(r.Context(), q)
		return readmodel.Answer[api.Page[readmodel.Hit]]{Value: web.PageOf(found.Value), Fresh: found.Fresh}, err
	})
}

func searchQuery(r *web.Request) (f readmodel.SearchQuery, err error) {
	q := r.Query
	if f.Paging, err = q.Paging(); err != nil {
		return f, err
	}
	switch f.Text, err = q.Word("q"); {
	case err != nil:
		return f, err
	case f.Text == "":
		return f, web.Invalid("q", "is required")
	}
	if f.SessionID, err = q.SessionID("sessionId"); err != nil {
		return f, err
	}
	if f.UserID, err = r.User(); err != nil {
		return f, err
	}
	f.Tenant = auth.CallerOf(r.Context()).OnlyTenant()
	f.AgentType, err = q.Word("agentType")
	return f, err
}

// Parked answers GET /parked: the records that could not be applied.
func (s *Routes) Parked(w http.ResponseWriter, r *web.Request) error {
	paging, err := r.Query.Paging()
	if err != nil {
		return err
	}
	caller := auth.CallerOf(r.Context())
	f := readmodel.ParkedFilter{Paging: paging, UserID: caller.OnlyUser(), Tenant: caller.OnlyTenant()}
	if f.SessionID, err = r.Query.LogID("sessionId"); err != nil {
		return err
	}
	return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[api.Page[readmodel.Parked]], error) {
		f.Visible = visible
		found, err := s.readModels.Parked(r.Context(), f)
		return readmodel.Answer[api.Page[readmodel.Parked]]{Value: web.PageOf(found.Value), Fresh: found.Fresh}, err
	})
}
