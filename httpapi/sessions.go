package httpapi

import (
	"cmp"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Limits of a page (facts 1.4).
const (
	defaultPage = 50
	maxPage     = 200
)

// Page is a part of a listing.
type Page[T any] struct {
	Items   []T  `json:"items"`
	Total   int  `json:"total"`
	Offset  int  `json:"offset"`
	Limit   int  `json:"limit"`
	HasMore bool `json:"hasMore"`
}

// Summary describes a session.
type Summary struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	AgentType string `json:"agentType"`
	// ParentSessionID is that of the session that called this one; empty: a
	// root.
	ParentSessionID string                  `json:"parentSessionId,omitempty"`
	Status          projector.SessionStatus `json:"status"`
	StreamStatus    eventlog.StreamStatus   `json:"streamStatus"`
	IsExecuting     bool                    `json:"isExecuting"` // by this node
	CurrentRun      *projector.Run          `json:"currentRun,omitempty"`
	UserID          string                  `json:"userId,omitempty"`
	Tags            []string                `json:"tags,omitempty"`
	Metadata        map[string]string       `json:"metadata,omitempty"`
	CreatedAt       int64                   `json:"createdAt"` // ms since the epoch
	UpdatedAt       int64                   `json:"updatedAt"` // ms since the epoch
	Counts          Counts                  `json:"counts"`
	HeadSequence    uint64                  `json:"headSequence"` // of the session's tree
	Durability      eventlog.Durability     `json:"durability"`
}

// Counts of a session.
type Counts struct {
	Messages    int `json:"messages"`
	Steps       int `json:"steps"` // committed, of all runs
	Runs        int `json:"runs"`
	Checkpoints int `json:"checkpoints"`
	// Parked are the records of a root's tree that could not be used.
	Parked int `json:"parked,omitempty"`
}

func (s *Server) summarize(r *request, t *projector.Tree, session *projector.Session) Summary {
	steps := 0
	for _, run := range session.Runs {
		steps += run.StepCount
	}
	parked := 0
	if session == &t.Session {
		parked = len(t.Parked)
	}
	return Summary{
		SessionID: session.SessionID, StreamID: session.StreamID, AgentType: session.AgentType, ParentSessionID: parentOf(t, session),
		Status: session.Status, StreamStatus: session.StreamStatus,
		IsExecuting: session.Running() && s.loop.Driven(r.Context(), t),
		CurrentRun:  session.CurrentRun(), UserID: cmp.Or(session.UserID, t.UserID), Tags: session.Tags, Metadata: session.Metadata,
		CreatedAt: session.CreatedAt, UpdatedAt: session.UpdatedAt,
		Counts: Counts{
			Messages: len(session.Messages), Steps: steps, Runs: len(session.Runs), Checkpoints: len(session.Checkpoints), Parked: parked,
		},
		HeadSequence: t.Head, Durability: s.log.Info().Durability,
	}
}

// SessionSummary is the answer of GET /sessions/{id}.
type SessionSummary struct {
	Summary
	// PendingToolCalls are the calls of the session's tree that wait for a
	// person.
	PendingToolCalls []PendingToolCall `json:"pendingToolCalls"`
}

// summary answers GET /sessions/{id}.
func (s *Server) summary(w http.ResponseWriter, r *request) error {
	t, err := s.states.Head(r.Context(), r.session)
	if err != nil {
		return err
	}
	return s.ok(w, SessionSummary{s.summarize(r, t, &t.Session), pendingCalls(t)})
}

// sessions answers GET /sessions: the sessions that the caller may see,
// sorted by id or, by read models, the last that changed first.
func (s *Server) sessions(w http.ResponseWriter, r *request) error {
	f, err := r.sessionFilter()
	if err != nil {
		return err
	}
	if s.opts.ReadModels != nil {
		return serveListing(s, w, r, func(visible readmodel.Visible) (readmodel.Answer[Page[Summary]], error) {
			f.Visible = visible
			rows, err := s.opts.ReadModels.Sessions(r.Context(), f)
			return readmodel.Answer[Page[Summary]]{Value: mapPage(rows.Value, func(row readmodel.Session) Summary {
				return s.summaryOf(r, row)
			}), Fresh: rows.Fresh}, err
		})
	}
	if f.Sort == readmodel.ByUpdated {
		return errNoReadModels // it would take a fold of each
	}
	found, err := s.foldSessions(r, f)
	if err != nil {
		return err
	}
	return s.ok(w, Listing[Summary]{Page: found, Fresh: readmodel.Fresh{Current: true}})
}

// sessionFilter reads what GET /sessions may be asked.
func (r *request) sessionFilter() (f readmodel.SessionFilter, err error) {
	q := r.query
	if f.Paging, err = q.paging(); err != nil {
		return f, err
	}
	if f.UserID, err = r.user(); err != nil {
		return f, err
	}
	f.Tenant = CallerOf(r.Context()).onlyTenant()
	if f.AgentType, err = q.word("agentType"); err != nil {
		return f, err
	}
	if f.Tag, err = q.word("tag"); err != nil {
		return f, err
	}
	if f.Metadata, err = q.metadata(); err != nil {
		return f, err
	}
	if f.From, f.To, err = q.period(); err != nil {
		return f, err
	}
	if f.Status, err = oneOf(q, "status", sessionStatuses); err != nil {
		return f, err
	}
	if f.Sort, err = oneOf(q, "sort", readmodel.SessionSorts()); err != nil {
		return f, err
	}
	f.ParentSessionID, err = q.sessionID("parentSessionId")
	return f, err
}

// summaryOf describes the session of a row.
func (s *Server) summaryOf(r *request, row readmodel.Session) Summary {
	tree := &projector.Tree{Session: projector.Session{SessionID: row.RootSessionID}, Claim: row.Claim}
	return Summary{
		SessionID: row.SessionID, StreamID: row.StreamID, AgentType: row.AgentType, ParentSessionID: row.ParentSessionID,
		Status: row.Status, StreamStatus: row.StreamStatus,
		IsExecuting: row.Running && s.loop.Driven(r.Context(), tree),
		CurrentRun:  row.CurrentRun, UserID: row.UserID, Tags: row.Tags, Metadata: row.Metadata,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, Counts: Counts(row.Counts),
		HeadSequence: row.HeadSequence, Durability: s.log.Info().Durability,
	}
}
