package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// RunFilter selects runs; what is empty selects all.
type RunFilter struct {
	SessionID string
	UserID    string
	AgentType string
	Status    fact.RunStatus
	// From and To bound when runs began, From <= t < To; zero: no bound.
	From, To time.Time
}

func (f RunFilter) query() url.Values {
	return given(map[string]string{
		"sessionId": f.SessionID, "userId": f.UserID, "agentType": f.AgentType, "status": string(f.Status),
		"from": millis(f.From), "to": millis(f.To),
	})
}

func millis(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// FindRuns returns a page of the runs of all sessions that the caller may see,
// the last begun first. The server needs read models for this, as it does for
// UsageBy, Search and Parked.
func (c *Client) FindRuns(ctx context.Context, f RunFilter, p Paging) (api.Listing[readmodel.Run], error) {
	return fetch(ctx, c, get("runs", p.to(f.query())), isListing[readmodel.Run])
}

// UsageFilter selects what is summed; what is empty selects all.
type UsageFilter struct {
	SessionID string // of a root: with all below it
	UserID    string
	AgentType string
	// From and To bound when runs began, From <= t < To; zero: no bound.
	From, To time.Time
}

// UsageBy returns what all sessions that the caller may see have used.
func (c *Client) UsageBy(ctx context.Context, by readmodel.UsageKey, f UsageFilter) (api.UsageReport, error) {
	q := given(map[string]string{
		"by": string(by), "sessionId": f.SessionID, "userId": f.UserID, "agentType": f.AgentType, "from": millis(f.From), "to": millis(f.To),
	})
	return fetch(ctx, c, get("usage", q), func(u *api.UsageReport) bool { return u.Rows != nil })
}

// SearchFilter selects where is searched; what is empty selects all.
type SearchFilter struct {
	SessionID string // of a root: with all below it
	UserID    string
	AgentType string
}

// Search returns a page of the messages and tool calls that have all words of
// a text, the best matches first. "Quoted words" must be adjacent.
func (c *Client) Search(ctx context.Context, text string, f SearchFilter, p Paging) (api.Listing[readmodel.Hit], error) {
	q := given(map[string]string{"q": text, "sessionId": f.SessionID, "userId": f.UserID, "agentType": f.AgentType})
	return fetch(ctx, c, get("search", p.to(q)), isListing[readmodel.Hit])
}

// Parked returns a page of the records that could not be used, of a root's
// tree or, if it is empty, of all.
func (c *Client) Parked(ctx context.Context, sessionID string, p Paging) (api.Listing[readmodel.Parked], error) {
	return fetch(ctx, c, get("parked", p.to(given(map[string]string{"sessionId": sessionID}))), isListing[readmodel.Parked])
}
