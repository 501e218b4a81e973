package readmodel

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"
)

// Models answers queries about all sessions. One answer never mixes two states of the
// rows. Errors: ErrUnavailable, a *QueryError, the context's error.
type Models interface {
	// Sessions returns sessions, sorted by id or as the filter says.
	Sessions(ctx context.Context, f SessionFilter) (Answer[Page[Session]], error)
	// Runs returns runs, the last begun first.
	Runs(ctx context.Context, f RunFilter) (Answer[Page[Run]], error)
	// Usage returns sums of what was used, sorted by key.
	Usage(ctx context.Context, q UsageQuery) (Answer[UsageReport], error)
	// Search returns hits, the best first.
	Search(ctx context.Context, q SearchQuery) (Answer[Page[Hit]], error)
	// Parked returns the records that could not be used, by session and
	// sequence.
	Parked(ctx context.Context, f ParkedFilter) (Answer[Page[Parked]], error)
	// Expiring yields the root sessions whose expiresAt is before a time, sorted by that.
	// It does not wait for current rows; a later call yields the sessions that it misses.
	Expiring(ctx context.Context, before time.Time) iter.Seq2[string, error]
	// Fresh returns, without waiting, how many records the rows lack.
	Fresh(ctx context.Context) Fresh
}

// ErrUnavailable: the rows can't be read now; they are being repaired or built.
var ErrUnavailable = errors.New("readmodel: the read models are not available")

// QueryError is a query that can't be answered.
type QueryError struct {
	Field  string // of the filter, as in the query of a URL
	Reason string
}

func (e *QueryError) Error() string { return "readmodel: " + e.Field + " " + e.Reason }

// Fresh says how current rows are.
type Fresh struct {
	// Current: the rows include everything that the log held when the query arrived.
	Current bool `json:"current"`
	// Lag is about how many records of the log are not in the rows yet; 0 if Current.
	Lag uint64 `json:"lag,omitempty"`
	// Rebuilding: the rows are being built again; sessions may be missing.
	Rebuilding bool `json:"rebuilding,omitempty"`
	// Problem is why the rows can't follow the log; empty: they can. It may name files
	// and addresses.
	Problem string `json:"problem,omitempty"`
	// Parked is how many records could not be used, in all. Only Models.Fresh
	// sets it.
	Parked int `json:"parked,omitempty"`
}

// Answer is an answer and how fresh it is.
type Answer[T any] struct {
	Value T
	Fresh Fresh
}

// Page is a part of a listing.
type Page[T any] struct {
	Items   []T  `json:"items"`
	Total   int  `json:"total"`
	Offset  int  `json:"offset"`
	Limit   int  `json:"limit"`
	HasMore bool `json:"hasMore"`
}

// Limits of queries.
const (
	// MaxPage is the largest Limit of a page; 0 means DefaultPage.
	MaxPage     = 200
	DefaultPage = 50
	// MaxHits bounds the hits that a search counts and pages through.
	MaxHits = 1000
	// MaxQueryBytes and MaxQueryTerms bound a search's text. A text with more terms is
	// refused, not shortened.
	MaxQueryBytes = 1024
	MaxQueryTerms = 32
	// MaxTextBytes is how many bytes of one message or tool call are searched.
	MaxTextBytes = 64 << 10
	// MaxSearched is how many bytes of texts, the newest first, a search reads that is
	// restricted to some sessions.
	MaxSearched = 64 << 20
	// SearchTime is how long a search may take.
	SearchTime = 5 * time.Second
	// SnippetTokens is about how many words of a hit are shown.
	SnippetTokens = 24
)

// Paging selects a part of a listing: 0 <= Offset, and Limit from 1 to MaxPage, or 0 for
// DefaultPage.
type Paging struct{ Offset, Limit int }

// Check returns the paging with its default, or a *QueryError.
func (p Paging) Check() (Paging, error) {
	p.Limit = cmp.Or(p.Limit, DefaultPage)
	switch {
	case p.Offset < 0:
		return p, &QueryError{Field: "offset", Reason: "must not be negative"}
	case p.Limit < 1 || p.Limit > MaxPage:
		return p, &QueryError{Field: "limit", Reason: "must be between 1 and 200"}
	}
	return p, nil
}

// Visible decides which trees a query may see, by the root's session id; nil: all. Other
// trees are neither shown nor counted. It is called once for each tree and must be quick.
type Visible func(root string) bool
