package sqlite

import (
	"database/sql"
	"errors"
)

// scope is what is to be written of a memory scope.
type scope struct {
	id               int64
	head             uint64
	memories, length int64            // to be added
	terms            map[string]int64 // to be added, by term
	models           map[string]modelCounts
}

// modelCounts are vectors of a model to be added: that there are, and that were
// removed.
type modelCounts struct{ vectors, removed int64 }

// scopeOf returns the scope of a log, which has a row from then on; first is
// where the log begins, if it had none.
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

// count notes a memory's terms as there, or gone.
func (s *scope) count(words []string, by int64) {
	s.memories += by
	s.length += by * int64(len(words))
	for word := range distinct(words) {
		s.terms[word] += by
	}
}

// writeScopes writes what was gathered of scopes.
func (p *projection) writeScopes() error {
	for log, s := range p.scopes {
		if err := p.writeScope(log, s); err != nil {
			return err
		}
	}
	clear(p.scopes)
	return nil
}

func (p *projection) writeScope(log string, s *scope) error {
	if err := p.exec("INSERT OR REPLACE INTO trees (root, head) VALUES (?, ?)", log, int64(s.head)); err != nil {
		return err
	}
	err := p.exec("UPDATE scopes SET memories = memories + ?, length = length + ? WHERE id = ?", s.memories, s.length, s.id)
	if err != nil {
		return err
	}
	for term, n := range s.terms {
		if n == 0 {
			continue
		}
		err := p.exec("INSERT INTO terms (scope, term, memories) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET memories = memories + excluded.memories",
			s.id, term, n)
		if err == nil && n < 0 {
			err = p.exec("DELETE FROM terms WHERE scope = ? AND term = ? AND memories <= 0", s.id, term)
		}
		if err != nil {
			return err
		}
	}
	for model, c := range s.models {
		err := p.exec(`INSERT INTO models (scope, model, vectors, removed) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET vectors = vectors + excluded.vectors, removed = removed + excluded.removed`, s.id, model, c.vectors, c.removed)
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteScope removes everything of a scope but what all logs have.
func (p *projection) deleteScope(log string) error {
	delete(p.scopes, log)
	var id int64
	err := p.row("SELECT id FROM scopes WHERE log = ?", []any{log}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	p.forgot = append(p.forgot, id)
	for _, text := range []string{
		"DELETE FROM memory_terms WHERE rowid IN (SELECT id FROM memories WHERE scope = ?)",
		"DELETE FROM vectors WHERE memory IN (SELECT id FROM memories WHERE scope = ?)",
		"DELETE FROM codes WHERE scope = ?",
		"DELETE FROM models WHERE scope = ?",
		"DELETE FROM terms WHERE scope = ?",
		"DELETE FROM memories WHERE scope = ?",
		"DELETE FROM forgotten WHERE scope = ?",
		"DELETE FROM scopes WHERE id = ?",
	} {
		if err := p.exec(text, id); err != nil {
			return err
		}
	}
	return nil
}

// forgotten forgets the codes of scopes that are gone.
func (p *projection) forgotten() {
	for _, id := range p.forgot {
		p.file.codes.forget(id)
	}
	p.forgot = nil
}
