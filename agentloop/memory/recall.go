package memory

import (
	"context"
	"errors"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/readmodel/words"
)

// Policy says what an agent does with memories.
type Policy struct {
	Scope  eventlog.MemoryScopeKind // whose memories they are
	Recall int                      // memories a turn, at most MaxHits; 0: none
	Save   bool                     // it has the tool save_memory
	Search bool                     // it has the tool search_memory
}

// errNoUser is for the model.
var errNoUser = errors.New("nobody has said whose this conversation is: there is no user whose memories it could have")

// scopeOf returns the scope of a turn or a call. A session's is the tree's. Users
// and agents have their own memories in each tenant.
func scopeOf(kind eventlog.MemoryScopeKind, w agentloop.SessionInfo) (eventlog.MemoryScope, error) {
	scope := eventlog.MemoryScope{Kind: kind}
	switch kind {
	case eventlog.MemoryOfUser:
		scope.ID, scope.Tenant = w.UserID, w.Tenant
	case eventlog.MemoryOfAgent:
		scope.ID, scope.Tenant = w.AgentType, w.Tenant
	case eventlog.MemoryOfSession:
		scope.ID = w.RootSessionID
	}
	if kind == eventlog.MemoryOfUser && scope.ID == "" {
		return scope, errNoUser
	}
	return scope, scope.Validate()
}

// Recall finds what an agent is to be reminded of in a turn that begins: at
// most p.Recall memories, none that the conversation has, and none that only
// happens to be nearest; see the package's documentation. Of a long question
// the first MaxQuestion bytes count. Without a user there are no memories of
// one, which is no error.
//
// Errors: those of the index and, if that lags, of the log;
// readmodel.ErrUnavailable also if nothing is found while it is made again.
func (m *Manager) Recall(ctx context.Context, req agentloop.RecallRequest, p Policy) ([]fact.RecalledMemory, error) {
	scope, err := scopeOf(p.Scope, req.SessionInfo)
	switch {
	case errors.Is(err, errNoUser):
		return nil, nil
	case err != nil:
		return nil, err
	}
	question := strings.ToValidUTF8(upstream.Cut(req.Query, MaxQuestion), "")
	if strings.TrimSpace(question) == "" || p.Recall <= 0 {
		return nil, nil
	}
	candidates, found, err := m.candidates(ctx, Query{Scope: scope, Text: question, Exclude: req.Known})
	if err != nil {
		return nil, err
	}
	topic := words.TopicOf(question)
	var recalled []fact.RecalledMemory
	for _, c := range candidates {
		if len(recalled) == min(p.Recall, MaxHits) {
			break
		}
		if c.near || topic.In(c.Content+" "+strings.Join(c.Tags, " ")) {
			recalled = append(recalled, fact.RecalledMemory{MemoryID: c.ID, Content: c.Content, Score: c.Score})
		}
	}
	if len(recalled) == 0 && found.Fresh.Rebuilding {
		return nil, readmodel.ErrUnavailable
	}
	return recalled, nil
}

// recaller is a policy's agentloop.Recaller.
type recaller struct {
	m *Manager
	p Policy
}

func (r recaller) Recall(ctx context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	found, err := r.m.Recall(ctx, req, r.p)
	return found, plain(err)
}

var errNoIndex = errors.New("memories can't be looked up now")

// plain is the text of an error for a model and for readers of a session. The
// index's own error may name files.
func plain(err error) error {
	if errors.Is(err, readmodel.ErrUnavailable) {
		return errNoIndex
	}
	return err
}
