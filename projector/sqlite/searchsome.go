package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/readmodel/words"
)

// searchSome finds the hits in some sessions. It does not use the index of all texts: its
// time and its ranking would reveal what is in other sessions.
func searchSome(ctx context.Context, tx *sql.Tx, phrases []string, q readmodel.SearchQuery) (readmodel.Page[readmodel.Hit], error) {
	found := readmodel.Page[readmodel.Hit]{Items: []readmodel.Hit{}, Offset: q.Offset, Limit: q.Limit}
	roots, err := rootsOf(ctx, tx, q)
	if err != nil || len(roots) == 0 {
		return found, err
	}
	texts, err := textsOf(ctx, tx, roots, q)
	if err != nil {
		return found, err
	}
	ranked, err := rank(ctx, tx, texts, phrases, halftime(ctx))
	if err != nil {
		return found, err
	}
	ranked = ranked[:min(len(ranked), readmodel.MaxHits)]
	found.Total = len(ranked)
	for _, t := range ranked[min(q.Offset, len(ranked)):min(q.Offset+q.Limit, len(ranked))] {
		const one = "w.text FROM texts t" + ofSession + " JOIN words w ON w.rowid = t.id WHERE t.id = ?"
		err := readHit(ctx, tx, &found, func(text string) string { return snippet(text, phrases) }, one, t.id)
		if err != nil {
			return found, err
		}
	}
	found.HasMore = found.Offset+len(found.Items) < found.Total
	return found, nil
}

// rootsOf returns the trees that a search is restricted to, as a JSON array, or "".
func rootsOf(ctx context.Context, tx *sql.Tx, q readmodel.SearchQuery) (string, error) {
	var w where
	text := "SELECT root FROM trees"
	w.equal("root", q.SessionID)
	w.tenant(q.Tenant)
	if q.UserID != "" {
		text = "SELECT DISTINCT root FROM sessions"
		w.equal("user", q.UserID)
	}
	visible := remembered(q.Visible)
	var roots []string
	err := each(ctx, tx, text+w.String(), w.args, func(row *sql.Rows) error {
		var root string
		err := row.Scan(&root)
		if err == nil && visible(root) {
			roots = append(roots, root)
		}
		return err
	})
	if err != nil || len(roots) == 0 {
		return "", err
	}
	return asArray(roots)
}

// candidate is a text that is searched, and how often it has each phrase.
type candidate struct {
	id, at int64
	length int
	counts []int
	score  float64
}

// textsOf returns the texts of trees, the newest first.
func textsOf(ctx context.Context, tx *sql.Tx, roots string, q readmodel.SearchQuery) (texts []candidate, err error) {
	var w where
	w.equal("s.user", q.UserID)
	w.equal("s.agent", q.AgentType)
	from := "SELECT t.id, t.at FROM json_each(?) j CROSS JOIN texts t ON t.root = j.value"
	if len(w.args) > 0 {
		from += " JOIN sessions s ON s.root = t.root AND s.session = t.session"
	}
	err = each(ctx, tx, from+w.String(), append([]any{roots}, w.args...), func(row *sql.Rows) error {
		var t candidate
		err := row.Scan(&t.id, &t.at)
		texts = append(texts, t)
		return err
	})
	slices.SortFunc(texts, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id)) })
	return texts, err
}

// halftime returns when half of the time is over that a context still has.
func halftime(ctx context.Context) time.Time {
	now := time.Now()
	end, ok := ctx.Deadline()
	if !ok {
		return now.Add(readmodel.SearchTime)
	}
	return now.Add(end.Sub(now) / 2)
}

// rank returns the texts that have all phrases, by BM25 among the texts that are
// searched. Those that it does not reach until then are left out, as those beyond
// MaxSearched are.
func rank(ctx context.Context, tx *sql.Tx, texts []candidate, phrases []string, until time.Time) ([]candidate, error) {
	wanted := make([][]string, len(phrases))
	for i, p := range phrases {
		wanted[i] = words.Of(p)
	}
	one, err := tx.PrepareContext(ctx, "SELECT text FROM words WHERE rowid = ?")
	if err != nil {
		return nil, err
	}
	defer one.Close()
	var found []candidate
	having := make([]int, len(phrases)) // number of texts that have it, by phrase
	bytes, length, n := 0, 0, 0
	for _, t := range texts {
		if n > 0 && !time.Now().Before(until) {
			break
		}
		var text string
		if err := one.QueryRowContext(ctx, t.id).Scan(&text); err != nil {
			return nil, fmt.Errorf("text %d: %w", t.id, err)
		}
		if bytes += len(text); bytes > readmodel.MaxSearched {
			break
		}
		n++
		all := words.Of(text)
		t.length, t.counts = len(all), make([]int, len(phrases))
		length += t.length
		every := true
		for i, w := range wanted {
			if t.counts[i] = occurrences(all, w); t.counts[i] > 0 {
				having[i]++
			} else {
				every = false
			}
		}
		if every {
			found = append(found, t)
		}
	}
	average := float64(max(length, 1)) / float64(max(n, 1))
	for i := range found {
		t := &found[i]
		for k, count := range t.counts {
			tf := float64(count)
			t.score += math.Log(1+(float64(n-having[k])+0.5)/(float64(having[k])+0.5)) * tf * (bm25K + 1) / (tf + bm25K*(1-bm25B+bm25B*float64(t.length)/average))
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(b.score, a.score) }) // stable, so that of equal scores the newest is first
	return found, nil
}

// occurrences counts how often all words occur in a row.
func occurrences(text, phrase []string) (n int) {
	if len(phrase) == 0 {
		return 0
	}
	for i := 0; i+len(phrase) <= len(text); i++ {
		if text[i] == phrase[0] && slices.Equal(text[i:i+len(phrase)], phrase) {
			n++
		}
	}
	return n
}

// snippet returns a part of a text around the first of the phrases that it finds.
func snippet(text string, phrases []string) string {
	wanted := map[string]bool{}
	for _, p := range phrases {
		for _, w := range words.Of(p) {
			wanted[w] = true
		}
	}
	fields := strings.Fields(text)
	at := 0
	for i, field := range fields {
		if slices.ContainsFunc(words.Of(field), func(w string) bool { return wanted[w] }) {
			at = i
			break
		}
	}
	from := max(0, min(at-readmodel.SnippetTokens/4, len(fields)-readmodel.SnippetTokens))
	to := min(len(fields), from+readmodel.SnippetTokens)
	part := strings.Join(fields[from:to], " ")
	if from > 0 {
		part = "…" + part
	}
	if to < len(fields) {
		part += "…"
	}
	if len(part) > maxSnippet {
		part = readmodel.Cut(part, maxSnippet) + "…"
	}
	return part
}

// maxSnippet bounds a snippet of a text without spaces, in bytes.
const maxSnippet = 1 << 10
