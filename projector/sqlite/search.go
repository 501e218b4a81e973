package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/helixd/helixd/projector/readmodel"
)

// Search implements readmodel.Models.
func (m *Models) Search(ctx context.Context, q readmodel.SearchQuery) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
	var none readmodel.Answer[readmodel.Page[readmodel.Hit]]
	phrases, err := phrasesOf(q.Text)
	if err != nil {
		return none, err
	}
	if q.Paging, err = q.Check(); err != nil {
		return none, err
	}
	if q.Offset >= readmodel.MaxHits {
		return none, &readmodel.QueryError{Field: "offset", Reason: fmt.Sprintf("must be less than %d", readmodel.MaxHits)}
	}
	fresh := m.await(ctx)
	page, err := lookBy(ctx, m, func(f *file) *sql.DB { return f.find }, readmodel.SearchTime, func(ctx context.Context, tx *sql.Tx) (readmodel.Page[readmodel.Hit], error) {
		if q.Visible == nil && q.SessionID+q.UserID+q.Tenant == "" {
			return search(ctx, tx, matchOf(phrases), q)
		}
		return searchSome(ctx, tx, phrases, q)
	})
	return readmodel.Answer[readmodel.Page[readmodel.Hit]]{Value: page, Fresh: fresh}, err
}

// search finds the hits in all sessions by rank, and then reads those of the page. It
// counts at most MaxHits.
func search(ctx context.Context, tx *sql.Tx, match string, q readmodel.SearchQuery) (readmodel.Page[readmodel.Hit], error) {
	found := readmodel.Page[readmodel.Hit]{Items: []readmodel.Hit{}, Offset: q.Offset, Limit: q.Limit}
	w := where{}
	w.and("words MATCH ?", match)
	w.equal("s.agent", q.AgentType)
	const from = " FROM words JOIN texts t ON t.id = words.rowid" + ofSession
	var ids []int64
	rows, err := tx.QueryContext(ctx, "SELECT t.id"+from+w.String()+" ORDER BY words.rank, t.at DESC, t.root, t.session, t.n DESC, t.id", w.args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for found.Total < readmodel.MaxHits && rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return found, err
		}
		if found.Total >= q.Offset && len(ids) < q.Limit {
			ids = append(ids, id)
		}
		found.Total++
	}
	if err := rows.Err(); err != nil {
		return found, err
	}
	rows.Close()
	one := "snippet(words, 0, '', '', '…', " + fmt.Sprint(readmodel.SnippetTokens) + ")" + from + " WHERE words MATCH ? AND words.rowid = ?"
	for _, id := range ids {
		err := readHit(ctx, tx, &found, func(text string) string { return strings.ToValidUTF8(text, "") }, one, match, id)
		if err != nil {
			return found, err
		}
	}
	found.HasMore = found.Offset+len(found.Items) < found.Total
	return found, nil
}

// ofSession joins a text's session.
const ofSession = " JOIN sessions s ON s.root = t.root AND s.session = t.session"

// readHit appends a hit to a page. text says what its text is, and where the hit is from;
// shown returns what is shown of the text.
func readHit(ctx context.Context, tx *sql.Tx, page *readmodel.Page[readmodel.Hit], shown func(string) string, text string, args ...any) error {
	const columns = "SELECT t.session, t.root, s.agent, s.user, t.kind, t.role, t.tool, t.call, t.sequence, t.at, "
	return each(ctx, tx, columns+text, args, func(row *sql.Rows) error {
		var h readmodel.Hit
		err := row.Scan(&h.SessionID, &h.RootSessionID, &h.AgentType, &h.UserID, &h.Kind, &h.Role, &h.ToolName, &h.ToolCallID,
			&h.Sequence, &h.Timestamp, &h.Snippet)
		h.Snippet = shown(h.Snippet)
		page.Items = append(page.Items, h)
		return err
	})
}

// matchOf returns an FTS5 expression for phrases: each is a quoted string, so that
// nothing in it is an operator.
func matchOf(phrases []string) string {
	quoted := make([]string, len(phrases))
	for i, p := range phrases {
		quoted[i] = `"` + p + `"`
	}
	return strings.Join(quoted, " ")
}

// phrasesOf returns the words that a user has typed, and the phrases that were between
// quotes.
func phrasesOf(text string) ([]string, error) {
	bad := func(reason string) ([]string, error) { return nil, &readmodel.QueryError{Field: "q", Reason: reason} }
	switch {
	case len(text) > readmodel.MaxQueryBytes:
		return bad(fmt.Sprintf("must be at most %d bytes", readmodel.MaxQueryBytes))
	case !utf8.ValidString(text):
		return bad("must be valid UTF-8")
	}
	var terms, phrases []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 { // between quotes
			terms = append(terms, part)
		} else {
			terms = append(terms, strings.Fields(part)...)
		}
	}
	for _, term := range terms {
		if strings.ContainsFunc(term, isWord) {
			phrases = append(phrases, strings.ReplaceAll(term, "\x00", " "))
		}
	}
	switch {
	case len(phrases) == 0:
		return bad("must hold a word")
	case len(phrases) > readmodel.MaxQueryTerms:
		return bad(fmt.Sprintf("must be at most %d words", readmodel.MaxQueryTerms))
	}
	return phrases, nil
}

// isWord reports whether a character is of a word, as the index sees it.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}
