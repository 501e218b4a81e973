package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/projector/readmodel"
)

// where gathers conditions and their values.
type where struct {
	conditions []string
	args       []any
}

func (w *where) and(condition string, args ...any) {
	w.conditions = append(w.conditions, condition)
	w.args = append(w.args, args...)
}

// equal adds a condition if the value is not empty.
func (w *where) equal(column, value string) {
	if value != "" {
		w.and(column+" = ?", value)
	}
}

// tenant adds the condition that a row's tree belongs to a tenant, if that is not empty.
func (w *where) tenant(tenant string) {
	if tenant != "" {
		w.and("root IN (SELECT root FROM trees WHERE tenant = ? AND tenant <> '')", tenant) // the form that the index covers
	}
}

// between adds from <= column < to; 0: no bound.
func (w *where) between(column string, from, to int64) {
	if from != 0 {
		w.and(column+" >= ?", from)
	}
	if to != 0 {
		w.and(column+" < ?", to)
	}
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// listing is a table to page through.
type listing struct {
	table string
	key   []string // columns that identify a row
	order string
	where where
	doc   string // expression of the row's JSON
}

// page returns a part of a listing. Rows that are not visible are left out before
// anything is counted.
func page[T any](ctx context.Context, tx *sql.Tx, l listing, visible readmodel.Visible, p readmodel.Paging) (readmodel.Page[T], error) {
	found := readmodel.Page[T]{Items: []T{}, Offset: p.Offset, Limit: p.Limit}
	var err error
	if visible == nil {
		count := "SELECT count(*) FROM " + l.table + l.where.String()
		if err := tx.QueryRowContext(ctx, count, l.where.args...).Scan(&found.Total); err != nil {
			return found, err
		}
		rest := " ORDER BY " + l.order + " LIMIT ? OFFSET ?"
		text, args := "SELECT "+l.doc+" FROM "+l.table+l.where.String()+rest, append(l.where.args, p.Limit, p.Offset)
		err = each(ctx, tx, text, args, func(row *sql.Rows) error { return addDoc(row, &found.Items) })
	} else {
		err = pageVisible(ctx, tx, l, visible, &found)
	}
	found.HasMore = found.Offset+len(found.Items) < found.Total
	return found, err
}

// pageVisible asks for the visibility of every row's root.
func pageVisible[T any](ctx context.Context, tx *sql.Tx, l listing, visible readmodel.Visible, found *readmodel.Page[T]) error {
	visible = remembered(visible)
	var keys [][]any
	text := "SELECT root, " + strings.Join(l.key, ", ") + " FROM " + l.table + l.where.String() + " ORDER BY " + l.order
	err := each(ctx, tx, text, l.where.args, func(row *sql.Rows) error {
		var root string
		key := make([]any, len(l.key))
		into := []any{&root}
		for i := range key {
			into = append(into, &key[i])
		}
		if err := row.Scan(into...); err != nil {
			return err
		}
		if !visible(root) {
			return nil
		}
		if found.Total >= found.Offset && len(keys) < found.Limit {
			keys = append(keys, append([]any{root}, key...))
		}
		found.Total++
		return nil
	})
	if err != nil {
		return err
	}
	one := "SELECT " + l.doc + " FROM " + l.table + " WHERE root = ?"
	for _, column := range l.key {
		one += " AND " + column + " = ?"
	}
	for _, key := range keys {
		if err := each(ctx, tx, one, key, func(row *sql.Rows) error { return addDoc(row, &found.Items) }); err != nil {
			return err
		}
	}
	return nil
}

// remembered calls visible once for each root.
func remembered(visible readmodel.Visible) readmodel.Visible {
	known := map[string]bool{}
	return func(root string) bool {
		yes, ok := known[root]
		if !ok {
			yes = visible == nil || visible(root)
			known[root] = yes
		}
		return yes
	}
}

func addDoc[T any](row *sql.Rows, items *[]T) error {
	var doc []byte
	if err := row.Scan(&doc); err != nil {
		return err
	}
	var item T
	if err := json.Unmarshal(doc, &item); err != nil {
		return err
	}
	*items = append(*items, item)
	return nil
}

func each(ctx context.Context, tx *sql.Tx, text string, args []any, f func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, text, args...)
	return eachRow(rows, err, f)
}

// eachRow calls f for each row of a query's answer, or returns the query's error.
func eachRow(rows *sql.Rows, err error, f func(*sql.Rows) error) error {
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
