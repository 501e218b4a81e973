package sqlite

import (
	"context"
	"database/sql"
)

func (p *projection) exec(text string, args ...any) error {
	s, err := p.stmt(text)
	if err == nil {
		_, err = s.Exec(args...)
	}
	return err
}

// row scans the only row of a query.
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
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// stmt returns a statement, prepared once. The texts are few.
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
