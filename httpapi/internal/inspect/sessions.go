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

// summarize returns the summary of a session of a tree.
func (s *Routes) summarize(r *web.Request, t *projector.Tree, session *projector.Session) api.Summary {
	return s.summaryOf(r, readmodel.SessionRow(t.SessionID, t, session))
}

// Summary answers GET /sessions/{id}.
func (s *Routes) Summary(w http.ResponseWriter, r *web.Request) error {
	t, err := s.states.Head(r.Context(), r.Session)
	if err != nil {
		return err
	}
	return r.OK(w, api.SessionSummary{Summary: s.summarize(r, t, &t.Session), PendingToolCalls: pendingCalls(t)})
}

// Sessions answers GET /sessions: the sessions that the caller may see, sorted by id or,
// with read models, by their last change.
func (s *Routes) Sessions(w http.ResponseWriter, r *web.Request) error {
	f, err := sessionFilter(r)
	if err != nil {
		return err
	}
	if s.readModels != nil {
		return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[api.Page[api.Summary]], error) {
			f.Visible = visible
			rows, err := s.readModels.Sessions(r.Context(), f)
			return readmodel.Answer[api.Page[api.Summary]]{Value: web.MapPage(rows.Value, func(row readmodel.Session) api.Summary {
				return s.summaryOf(r, row)
			}), Fresh: rows.Fresh}, err
		})
	}
	if f.Sort == readmodel.ByUpdated {
		return ErrNoReadModels // it would take a fold of each
	}
	found, err := s.foldSessions(r, f)
	if err != nil {
		return err
	}
	return r.OK(w, api.Listing[api.Summary]{Page: found, Fresh: readmodel.Fresh{Current: true}})
}

// sessionFilter reads the query of GET /sessions.
func sessionFilter(r *web.Request) (readmodel.SessionFilter, error) {
	q := r.Query
	f := readmodel.SessionFilter{
		Paging: q.Page(), UserID: r.User(), Tenant: auth.CallerOf(r.Context()).OnlyTenant(), AgentType: q.Word("agentType"), Tag: q.Word("tag"),
		Metadata: q.Metadata(),
	}
	f.From, f.To = q.Period()
	f.Status = web.OneOf(q, "status", sessionStatuses)
	f.StreamStatus = web.OneOf(q, "streamStatus", streamStatuses)
	if f.Status == projector.SessionPaused && (f.StreamStatus == "" || f.StreamStatus == eventlog.StreamWaiting) { // as GET /status calls it; no fold has that status
		f.Status, f.StreamStatus = projector.SessionActive, eventlog.StreamWaiting
	}
	f.Sort = web.OneOf(q, "sort", readmodel.SessionSorts())
	f.ParentSessionID, f.ForkedFrom = q.SessionID("parentSessionId"), q.SessionID("forkedFrom")
	return f, *q.Err
}

// summaryOf returns the summary of a row of the read models.
func (s *Routes) summaryOf(r *web.Request, row readmodel.Session) api.Summary {
	tree := &projector.Tree{Session: projector.Session{SessionID: row.RootSessionID}, Claim: row.Claim}
	return api.Summary{
		SessionID: row.SessionID, StreamID: row.StreamID, AgentType: row.AgentType, ParentSessionID: row.ParentSessionID,
		ForkedFrom: row.ForkedFrom, Status: row.Status, StreamStatus: row.StreamStatus,
		IsExecuting: row.Running && s.loop.Driven(r.Context(), tree),
		CurrentRun:  row.CurrentRun, UserID: row.UserID, Tags: row.Tags, Metadata: row.Metadata,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, Counts: row.Counts,
		HeadSequence: row.HeadSequence, Durability: s.log.Info().Durability,
	}
}
