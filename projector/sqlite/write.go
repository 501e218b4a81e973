package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// commit writes everything that is new, and then notifies those that wait.
func (p *projection) commit() error {
	began := time.Now()
	defer func() { p.took, p.spent = p.spent+time.Since(began), 0 }()
	if err := p.transact(); err != nil {
		return err
	}
	p.write()
	if p.put("COMMIT"); p.err != nil {
		return errors.Join(p.err, p.rollback())
	}
	p.begun = false
	p.forgotten()
	clear(p.removed)
	p.parks = nil
	for _, h := range p.cache.folds {
		h.dirty = false
	}
	p.cache.shrink(time.Now())
	p.moved()
	return nil
}

// moved publishes how far the file is and wakes the queries that wait.
func (p *projection) moved() {
	positions, reached, ahead := make([]uint64, len(p.positions)), true, false
	for i, at := range p.positions {
		ahead = ahead || at.unsure && at.sure() > p.target[i] // the feed says whether it is
		positions[i] = at.sure()
		reached = reached && positions[i] >= p.target[i]
	}
	p.m.set(func(s *state) {
		s.positions, s.untidy = positions, p.gaps || ahead
		s.rebuilding = s.rebuilding && !reached
		if reached && !p.gaps { // not before: the failure may repeat
			s.problem = ""
		}
	})
}

// transact begins a transaction, if none is open.
func (p *projection) transact() error {
	if p.begun {
		return nil
	}
	err := p.exec("BEGIN IMMEDIATE")
	p.begun = err == nil
	return err
}

func (p *projection) rollback() error {
	if !p.begun {
		return nil
	}
	p.begun = false
	return p.exec("ROLLBACK")
}

func (p *projection) write() {
	for root := range p.removed {
		p.remain()
		p.deleteTree(root)
	}
	for _, h := range p.cache.folds {
		if h.dirty {
			p.writeTree(h)
		}
	}
	for _, k := range p.parks {
		p.put("INSERT OR REPLACE INTO parked (root, sequence, stuck, type, reason) VALUES (?, ?, 1, ?, ?)",
			k.root, int64(k.sequence), k.typ, k.reason)
	}
	for i, at := range p.positions {
		p.put("INSERT OR REPLACE INTO positions (partition, position, digest) VALUES (?, ?, ?)", i, int64(at.at), at.digest)
	}
	p.writeScopes()
	p.keepHoles()
}

func (p *projection) deleteTree(root string) {
	if eventlog.IsMemoryLog(root) {
		p.keep(p.deleteScope(root))
	}
	p.deleteWords("root = ?", root)
	for _, table := range ofTree {
		p.put("DELETE FROM "+table+" WHERE root = ?", root)
	}
}

// deleteWords removes texts from their table and from the search index.
func (p *projection) deleteWords(where string, args ...any) {
	p.put("DELETE FROM words WHERE rowid IN (SELECT id FROM texts WHERE "+where+")", args...)
	p.put("DELETE FROM texts WHERE "+where, args...)
}

// keep keeps the first error: nothing is put after it, and commit returns it.
func (p *projection) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

// put executes a statement unless there is an error.
func (p *projection) put(text string, args ...any) {
	if p.err == nil {
		p.err = p.exec(text, args...)
	}
}

func (p *projection) exec(text string, args ...any) error {
	s, err := p.stmt(text)
	if err == nil {
		_, err = s.Exec(args...)
	}
	return err
}

// row scans a query's only row.
func (p *projection) row(text string, args []any, into ...any) error {
	s, err := p.stmt(text)
	if err == nil {
		err = s.QueryRow(args...).Scan(into...)
	}
	return err
}

// each calls f for each row of a query; f must not use the connection.
func (p *projection) each(text string, args []any, f func(*sql.Rows) error) error {
	s, err := p.stmt(text)
	if err != nil {
		return err
	}
	rows, err := s.Query(args...)
	return eachRow(rows, err, f)
}

// stmt returns a prepared statement from a cache. There are few different texts.
func (p *projection) stmt(text string) (*sql.Stmt, error) {
	if s := p.stmts[text]; s != nil {
		return s, nil
	}
	s, err := p.file.conn.PrepareContext(context.Background(), text)
	if err == nil {
		p.stmts[text] = s
	}
	return s, err
}

func (p *projection) closeStatements() {
	for _, s := range p.stmts {
		s.Close()
	}
}
