package sqlite

import (
	"strconv"
	"strings"
	"time"
)

const (
	// clearMemories bounds the memories of erased scopes that one transaction overwrites,
	// while all other writes wait: about 50 ms.
	clearMemories = 100
	// clearPause is the least time for other writes in between.
	clearPause = gatherLeast
)

// scope gathers what is to be written of a memory scope.
type scope struct {
	id               int64
	head             uint64
	memories, length int64            // to be added
	terms            map[string]int64 // to be added, by term
	models           map[string]modelCounts
}

// modelCounts are changes of a model's counts: vectors that exist, and vectors that were
// removed.
type modelCounts struct{ vectors, removed int64 }

// scopeOf returns the scope of a log, and adds its row if there is none; first is then
// the sequence of the log's first record.
func (p *projection) scopeOf(log string, first uint64) (*scope, error) {
	if s := p.scopes[log]; s != nil {
		return s, nil
	}
	s := &scope{terms: map[string]int64{}, models: map[string]modelCounts{}}
	if err := p.exec("INSERT OR IGNORE INTO scopes (log, first, memories, length) VALUES (?, ?, 0, 0)", log, int64(first)); err != nil {
		return nil, err
	}
	p.scopes[log] = s
	return s, p.row("SELECT id FROM scopes WHERE log = ?", []any{log}, &s.id)
}

// count adds a memory's terms to the counts; by is 1 or -1.
func (s *scope) count(words []string, by int64) {
	s.memories += by
	s.length += by * int64(len(words))
	for word := range distinct(words) {
		s.terms[word] += by
	}
}

// writeScopes writes the gathered changes of scopes.
func (p *projection) writeScopes() {
	for log, s := range p.scopes {
		p.writeScope(log, s)
	}
	clear(p.scopes)
}

func (p *projection) writeScope(log string, s *scope) {
	p.put("INSERT OR REPLACE INTO trees (root, head) VALUES (?, ?)", log, int64(s.head))
	p.put("UPDATE scopes SET memories = memories + ?, length = length + ? WHERE id = ?", s.memories, s.length, s.id)
	for term, n := range s.terms {
		if n == 0 {
			continue
		}
		p.put("INSERT INTO terms (scope, term, memories) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
			s.id, term, n)
		if n < 0 {
			p.put("DELETE FROM terms WHERE scope = ? AND term = ? AND memories <= 0", s.id, term)
		}
	}
	for model, c := range s.models {
		p.put(`INSERT INTO models (scope, model, vectors, removed) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET vectors = vectors + excluded.vectors, removed = removed + excluded.removed`, s.id, model, c.vectors, c.removed)
	}
}

// deleteScope removes a scope, so that nothing of it is found any more. clearPart removes
// its rows.
func (p *projection) deleteScope(log string) error {
	delete(p.scopes, log)
	var id int64
	err := p.row("SELECT id FROM scopes WHERE log = ?", []any{log}, &id)
	if err != nil {
		return ignoreNoRows(err)
	}
	p.forgot = append(p.forgot, id)
	p.leavings = true
	p.put("INSERT INTO erased (scope) VALUES (?)", id)
	p.put("DELETE FROM scopes WHERE id = ?", id)
	return p.err
}

// clearPart overwrites a part of the rows of erased scopes, if it is time. It works in
// parts because the search index needs many seconds for the words of a large scope, and
// other records are written in between.
func (p *projection) clearPart() error {
	if !p.leavings || time.Until(p.clearNext) > 0 {
		return nil
	}
	if err := p.transact(); err != nil {
		return err
	}
	const left = "erased e CROSS JOIN memories m ON m.scope = e.scope"
	const part = "(SELECT m.id FROM " + left + " ORDER BY e.scope, m.sequence LIMIT ?)"
	for _, text := range []string{
		"DELETE FROM memory_terms WHERE rowid IN " + part,
		"DELETE FROM vectors WHERE memory IN " + part,
		"DELETE FROM memories WHERE id IN " + part,
	} {
		p.put(text, p.m.opts.clearMemories)
	}
	if p.keep(p.row("SELECT EXISTS (SELECT 1 FROM "+left+")", nil, &p.leavings)); p.err == nil && !p.leavings {
		for _, table := range []string{"models", "terms", "forgotten", "erased"} {
			p.put("DELETE FROM " + table + " WHERE scope IN erased")
		}
		p.remain()
	}
	err := p.commit()
	p.clearNext = time.Now().Add(p.m.opts.clearPause)
	return err
}

// forgotten drops the vectors of removed scopes from memory.
func (p *projection) forgotten() {
	for _, id := range p.forgot {
		p.file.vectors.forget(id)
	}
	p.forgot = nil
}

// distinct returns the different words.
func distinct(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// prefixOf is the prefix of a scope's terms in the search index, whose words consist of
// letters and digits.
func prefixOf(scope int64) string { return strconv.FormatInt(scope, 10) + "x" }

// joined is the form of words in the search index.
func (s *scope) joined(words []string) string {
	prefix := prefixOf(s.id)
	var text strings.Builder
	for i, word := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(prefix + word)
	}
	return text.String()
}

// split is the inverse of joined.
func (s *scope) split(text string) []string {
	prefix := prefixOf(s.id)
	words := strings.Split(text, " ")
	if text == "" {
		return nil
	}
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], prefix)
	}
	return words
}
