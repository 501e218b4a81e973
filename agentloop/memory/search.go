package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Limits of a search.
const (
	MaxQuestion = 8 << 10 // bytes of a question
	MaxHits     = 50
	DefaultHits = 10
)

// Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): a memory's score is
// the sum of weight/(rankConstant+rank) over the rankings that it is in. Words
// and meaning weigh the same.
const (
	WordsWeight   = 1.0
	MeaningWeight = 1.0
	rankConstant  = 60
	ranked        = MaxHits // how many of each ranking are looked at
)

// Query is what memories of a scope are searched for.
type Query struct {
	Scope   eventlog.MemoryScope
	Text    string   // at most MaxQuestion bytes, not blank
	Limit   int      // 1 to MaxHits; 0 means DefaultHits
	Exclude []string // ids that are not wanted
}

// Found is what a search has found.
type Found struct {
	Hits []Hit `json:"hits"` // best first
	// WordsOnly: the embedder did not answer; what fits by meaning alone is
	// not here.
	WordsOnly bool            `json:"wordsOnly,omitempty"`
	Fresh     readmodel.Fresh `json:"fresh"`
}

// Hit is a memory that was found.
type Hit struct {
	readmodel.Memory
	// Score is over 0 and up to 1, which is the first of all rankings.
	Score float64 `json:"score"`
}

// Search finds the memories of a scope that fit best; see the package's
// documentation. Errors: a *eventlog.ValidationError; those of the index and, if
// that lags, of the log.
func (m *Manager) Search(ctx context.Context, q Query) (Found, error) {
	if err := q.Scope.Validate(); err != nil {
		return Found{}, err
	}
	q.Limit = cmp.Or(q.Limit, DefaultHits)
	switch {
	case strings.TrimSpace(q.Text) == "":
		return Found{}, invalid("q", "must not be empty")
	case len(q.Text) > MaxQuestion:
		return Found{}, invalid("q", fmt.Sprintf("must be at most %d bytes, not %d", MaxQuestion, len(q.Text)))
	case !utf8.ValidString(q.Text):
		return Found{}, invalid("q", "must be valid UTF-8")
	case q.Limit < 1 || q.Limit > MaxHits:
		return Found{}, invalid("limit", fmt.Sprintf("must be between 1 and %d", MaxHits))
	}
	candidates, found, err := m.candidates(ctx, q)
	if err != nil {
		return Found{}, err
	}
	for _, c := range candidates[:min(q.Limit, len(candidates))] {
		found.Hits = append(found.Hits, c.Hit)
	}
	return found, nil
}

// candidate is a memory of either ranking.
type candidate struct {
	Hit
	byWords bool
	near    bool // a cosine of at least Options.MinCosine
}

// candidates asks the index and joins what it says, best first. Found has no
// hits yet.
func (m *Manager) candidates(ctx context.Context, q Query) ([]candidate, Found, error) {
	found := Found{Hits: []Hit{}}
	ask := readmodel.MemoryQuery{Scope: q.Scope, Text: q.Text, Limit: ranked, Exclude: q.Exclude}
	if m.opts.Embedder != nil {
		vectors, err := m.embed(ctx, QuestionTimeout, ofQuestion, q.Text)
		switch {
		case err == nil:
			ask.Model, ask.Vector = m.model(), vectors[0]
		case ctx.Err() != nil:
			return nil, found, context.Cause(ctx)
		default:
			found.WordsOnly = true
			m.opts.Logger.Warn("a question has no vector: only memories with its words are found", append([]any{"scope", q.Scope.Kind}, causeOf(err)...)...)
		}
	}
	answer, err := m.opts.Index.Candidates(ctx, ask)
	if err != nil {
		return nil, found, err
	}
	found.Fresh = answer.Fresh
	if !answer.Fresh.Current {
		if answer.Value, err = m.withoutGone(ctx, q.Scope.LogID(), answer.Value); err != nil {
			return nil, found, err
		}
	}
	return m.fuse(answer.Value, ask.Vector != nil), found, nil
}

// fuse joins the rankings. Of what is near by meaning only it keeps what is
// near enough.
func (m *Manager) fuse(c readmodel.MemoryCandidates, byMeaning bool) []candidate {
	best := WordsWeight / (rankConstant + 1)
	if byMeaning {
		best += MeaningWeight / (rankConstant + 1)
	}
	at := map[string]int{} // in all, by id
	var all []candidate
	place := func(r readmodel.RankedMemory) *candidate {
		i, ok := at[r.ID]
		if !ok {
			i = len(all)
			at[r.ID], all = i, append(all, candidate{Hit: Hit{Memory: r.Memory}})
		}
		return &all[i]
	}
	for i, r := range c.ByWords {
		one := place(r)
		one.byWords = true
		one.Score += WordsWeight / float64(rankConstant+1+i) / best
	}
	for i, r := range c.ByMeaning {
		one := place(r)
		one.near = r.Score >= m.opts.MinCosine
		one.Score += MeaningWeight / float64(rankConstant+1+i) / best
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return !c.byWords && !c.near })
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.Sequence, a.Sequence))
	})
	return all
}
