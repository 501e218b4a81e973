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
	match, err := matchOf(q.Text)
	if err != nil {
		return none, err
	}
	if q.Paging, err = q.Check(); err != nil {
		return none, err
	}
	if q.Offset >= readmodel.MaxHits {
		return none, &readmodel.QueryError{Field: "offset", Reason: fmt.Sprintf("must be less than %d", readmodel.MaxHits)}
	}
	return ask(ctx, m, func(tx *sql.Tx) (readmodel.Page[readmodel.Hit], error) { return search(ctx, tx, match, q) })
}

// search finds the hits by rank, and then looks at those of the page. It counts
// no further than MaxHits.
func search(ctx context.Context, tx *sql.Tx, match string, q readmodel.SearchQuery) (readmodel.Page[readmodel.Hit], error) {
	found := readmodel.Page[readmodel.Hit]{Items: []readmodel.Hit{}, Offset: q.Offset, Limit: q.Limit}
	w := where{}
	w.and("words MATCH ?", match)
	w.equal("t.root", q.SessionID)
	w.equal("s.user", q.UserID)
	w.equal("s.agent", q.AgentType)
	const from = " FROM words JOIN texts t ON t.id = words.rowid JOIN sessions s ON s.root = t.root AND s.session = t.session"
	visible := remembered(q.Visible)
	var ids []int64
	rows, err := tx.QueryContext(ctx, "SELECT t.id, t.root"+from+w.String()+" ORDER BY words.rank, t.at DESC, t.root, t.session, t.n DESC, t.id", w.args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	for found.Total < readmodel.MaxHits && rows.Next() {
		var id int64
		var root string
		if err := rows.Scan(&id, &root); err != nil {
			return found, err
		}
		if !visible(root) {
			continue
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
	one := `SELECT t.session, t.root, s.agent, s.user, t.kind, t.role, t.tool, t.call, t.sequence, t.at,
		snippet(words, 0, '', '', '…', ` + fmt.Sprint(readmodel.SnippetTokens) + ")" + from + " WHERE words MATCH ? AND words.rowid = ?"
	for _, id := range ids {
		err := each(ctx, tx, one, []any{match, id}, func(row *sql.Rows) error {
			var h readmodel.Hit
			err := row.Scan(&h.SessionID, &h.RootSessionID, &h.AgentType, &h.UserID, &h.Kind, &h.Role, &h.ToolName, &h.ToolCallID,
				&h.Sequence, &h.Timestamp, &h.Snippet)
			h.Snippet = strings.ToValidUTF8(h.Snippet, "")
			found.Items = append(found.Items, h)
			return err
		})
		if err != nil {
			return found, err
		}
	}
	found.HasMore = found.Offset+len(found.Items) < found.Total
	return found, nil
}

// matchOf makes an expression of FTS5 of what a user has typed: every term is
// a quoted string, so that nothing in it is an operator.
func matchOf(text string) (string, error) {
	bad := func(reason string) (string, error) { return "", &readmodel.QueryError{Field: "q", Reason: reason} }
	switch {
	case len(text) > readmodel.MaxQueryBytes:
		return bad(fmt.Sprintf("must be at most %d bytes", readmodel.MaxQueryBytes))
	case !utf8.ValidString(text):
		return bad("must be valid UTF-8")
	}
	var terms []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 { // between quotes
			terms = append(terms, part)
		} else {
			terms = append(terms, strings.Fields(part)...)
		}
	}
	var quoted []string
	for _, term := range terms {
		if strings.ContainsFunc(term, isWord) {
			quoted = append(quoted, `"`+strings.ReplaceAll(term, "\x00", " ")+`"`)
		}
	}
	switch {
	case len(quoted) == 0:
		return bad("must hold a word")
	case len(quoted) > readmodel.MaxQueryTerms:
		return bad(fmt.Sprintf("must be at most %d words", readmodel.MaxQueryTerms))
	}
	return strings.Join(quoted, " "), nil
}

// isWord reports whether a character is of a word, as the index sees it.
func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r)
}
