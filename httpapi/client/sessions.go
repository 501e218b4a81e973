package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

func isPage[T any](p *api.Page[T]) bool { return p.Items != nil }

func isListing[T any](l *api.Listing[T]) bool { return l.Items != nil }

// Paging says which page of a listing is wanted.
type Paging struct {
	Offset int
	Limit  int // at most 200; 0: 50
}

func (p Paging) to(q url.Values) url.Values {
	if p.Offset != 0 {
		q.Set("offset", strconv.Itoa(p.Offset))
	}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

// SessionFilter selects sessions; what is empty selects all.
type SessionFilter struct {
	UserID    string
	AgentType string
	Status    projector.SessionStatus
	// StreamStatus is paused for sessions that wait for somebody; their Status is active.
	StreamStatus eventlog.StreamStatus
	Tag          string
	// Metadata are entries that a session's metadata must all have, at most 16.
	Metadata map[string]string
	// From and To bound when sessions were created: From <= createdAt < To;
	// the zero time is no bound.
	From, To time.Time
	// ParentSessionID selects the sessions that this one has called; else
	// roots are listed.
	ParentSessionID string
	ForkedFrom      string // selects the forks of a session
	// Sort is the order of a page; empty: by id. Only a server with read models
	// knows others.
	Sort readmodel.SessionSort
}

func (f SessionFilter) query() url.Values {
	q := given(map[string]string{
		"userId": f.UserID, "agentType": f.AgentType, "status": string(f.Status), "streamStatus": string(f.StreamStatus), "tag": f.Tag, "from": millis(f.From), "to": millis(f.To),
		"parentSessionId": f.ParentSessionID, "forkedFrom": f.ForkedFrom, "sort": string(f.Sort),
	})
	for name, value := range f.Metadata {
		q.Add("metadata", name+"="+value)
	}
	return q
}

// given returns the parameters that are not empty.
func given(values map[string]string) url.Values {
	q := url.Values{}
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

func positive(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// Sessions returns a page of the sessions that the caller may see, sorted by
// the bytes of their ids unless the filter says otherwise.
func (c *Client) Sessions(ctx context.Context, f SessionFilter, p Paging) (api.Listing[api.Summary], error) {
	return fetch(ctx, c, get("sessions", p.to(f.query())), isListing[api.Summary])
}

// AllSessions yields all sessions that the caller may see, always sorted by id.
// One that is there from the beginning to the end is yielded once,
// whatever others come and go meanwhile. An error is last.
func (c *Client) AllSessions(ctx context.Context, f SessionFilter) iter.Seq2[api.Summary, error] {
	return func(yield func(api.Summary, error) bool) {
		f.Sort = "" // else some would move from page to page
		last := ""
		for offset := 0; ; {
			page, err := c.Sessions(ctx, f, Paging{Offset: offset, Limit: api.MaxPage})
			if err != nil {
				yield(api.Summary{}, err)
				return
			}
			// A page begins with the last session of the one before. If it
			// does not, others have gone, and what follows moved to the front.
			if offset > 0 && (len(page.Items) == 0 || page.Items[0].SessionID > last) {
				offset = max(offset-api.MaxPage, 0)
				continue
			}
			for _, s := range page.Items {
				if s.SessionID <= last {
					continue
				}
				if last = s.SessionID; !yield(s, nil) {
					return
				}
			}
			if !page.HasMore {
				return
			}
			offset += max(len(page.Items)-1, 1)
		}
	}
}

// Session returns a session's summary.
func (c *Client) Session(ctx context.Context, sessionID string) (api.SessionSummary, error) {
	return fetch(ctx, c, get("", nil).of("sessions", sessionID), func(s *api.SessionSummary) bool { return s.SessionID != "" })
}

// Checkpoints returns a page of a session's checkpoints, oldest first.
func (c *Client) Checkpoints(ctx context.Context, sessionID string, p Paging) (api.Page[projector.Checkpoint], error) {
	return pageOf[projector.Checkpoint](ctx, c, sessionID, "checkpoints", p)
}

// Runs returns a page of a session's runs, oldest first.
func (c *Client) Runs(ctx context.Context, sessionID string, p Paging) (api.Page[projector.Run], error) {
	return pageOf[projector.Run](ctx, c, sessionID, "runs", p)
}

func pageOf[T any](ctx context.Context, c *Client, sessionID, listing string, p Paging) (api.Page[T], error) {
	return fetch(ctx, c, get(listing, p.to(url.Values{})).of("sessions", sessionID), isPage[T])
}
