package httpapi

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
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
	SessionID    string                  `json:"sessionId"`
	StreamID     string                  `json:"streamId"`
	AgentType    string                  `json:"agentType"`
	Status       projector.SessionStatus `json:"status"`
	StreamStatus eventlog.StreamStatus   `json:"streamStatus"`
	IsExecuting  bool                    `json:"isExecuting"` // by this node
	CurrentRun   *projector.Run          `json:"currentRun,omitempty"`
	UserID       string                  `json:"userId,omitempty"`
	Tags         []string                `json:"tags,omitempty"`
	Metadata     map[string]string       `json:"metadata,omitempty"`
	CreatedAt    int64                   `json:"createdAt"` // ms since the epoch
	UpdatedAt    int64                   `json:"updatedAt"` // ms since the epoch
	Counts       Counts                  `json:"counts"`
	HeadSequence uint64                  `json:"headSequence"` // of the session's tree
	Durability   eventlog.Durability     `json:"durability"`
}

// Counts of a session.
type Counts struct {
	Messages    int `json:"messages"`
	Steps       int `json:"steps"` // committed, of all runs
	Runs        int `json:"runs"`
	Checkpoints int `json:"checkpoints"`
}

func (s *Server) summarize(r *request, t *projector.Tree, session *projector.Session) Summary {
	steps := 0
	for _, run := range session.Runs {
		steps += run.StepCount
	}
	return Summary{
		SessionID: session.SessionID, StreamID: session.StreamID, AgentType: session.AgentType,
		Status: session.Status, StreamStatus: session.StreamStatus,
		IsExecuting: session.Running() && s.loop.Driven(r.Context(), t),
		CurrentRun:  session.CurrentRun(), UserID: session.UserID, Tags: session.Tags, Metadata: session.Metadata,
		CreatedAt: session.CreatedAt, UpdatedAt: session.UpdatedAt,
		Counts: Counts{
			Messages: len(session.Messages), Steps: steps, Runs: len(session.Runs), Checkpoints: len(session.Checkpoints),
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
// sorted by id. Filters look at every session's fold.
func (s *Server) sessions(w http.ResponseWriter, r *request) error {
	offset, limit, err := r.query.page()
	if err != nil {
		return err
	}
	found := Page[Summary]{Items: []Summary{}, Offset: offset, Limit: limit}
	add := func(summary func() (Summary, error)) error {
		if found.Total >= offset && len(found.Items) < limit {
			item, err := summary()
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				return nil // erased meanwhile
			}
			if err != nil {
				return err
			}
			found.Items = append(found.Items, item)
		}
		found.Total++
		return nil
	}
	if parent := r.query.values.Get("parentSessionId"); parent != "" {
		err = s.listChildren(r, parent, add)
	} else {
		err = s.listRoots(r, add)
	}
	if err != nil {
		return err
	}
	found.HasMore = offset+len(found.Items) < found.Total
	return s.ok(w, found)
}

// listRoots calls add for each root session that fits. Without filters only
// those that add asks for are folded.
func (s *Server) listRoots(r *request, add func(func() (Summary, error)) error) error {
	for id, err := range s.log.Sessions(r.Context()) {
		if err != nil {
			return err
		}
		visible, err := s.visible(r, id)
		if err != nil {
			return err
		}
		if !visible {
			continue
		}
		summary := func() (Summary, error) {
			t, err := s.states.Head(r.Context(), id)
			if err != nil {
				return Summary{}, err
			}
			return s.summarize(r, t, &t.Session), nil
		}
		if r.query.filters() {
			item, err := summary()
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if !r.query.matches(item) {
				continue
			}
			summary = func() (Summary, error) { return item, nil }
		}
		if err := add(summary); err != nil {
			return err
		}
	}
	return nil
}

// listChildren calls add for each session that fits in the tree of a root.
func (s *Server) listChildren(r *request, parent string, add func(func() (Summary, error)) error) error {
	if err := eventlog.ValidateSessionID(parent); err != nil {
		return invalid("parentSessionId", "must be a session id")
	}
	if visible, err := s.visible(r, parent); err != nil || !visible {
		return err
	}
	t, err := s.states.Head(r.Context(), parent)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(t.Children)) {
		item := s.summarize(r, t, t.Children[id])
		if !r.query.matches(item) {
			continue
		}
		if err := add(func() (Summary, error) { return item, nil }); err != nil {
			return err
		}
	}
	return nil
}

// visible reports whether the caller may see a session in a listing.
func (s *Server) visible(r *request, id string) (bool, error) {
	err := s.authorize(r, id)
	if errors.Is(err, ErrForbidden) || errors.Is(err, ErrUnauthorized) {
		return false, nil
	}
	return err == nil, err
}

func (q query) filters() bool {
	return q.values.Has("agentType") || q.values.Has("status") || q.values.Has("userId") || q.values.Has("tag")
}

func (q query) matches(item Summary) bool {
	fits := func(name, value string) bool { return !q.values.Has(name) || q.values.Get(name) == value }
	return fits("agentType", item.AgentType) && fits("status", string(item.Status)) && fits("userId", item.UserID) &&
		(!q.values.Has("tag") || slices.Contains(item.Tags, q.values.Get("tag")))
}
