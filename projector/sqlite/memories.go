package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

var _ readmodel.Memories = (*Models)(nil)

// memoryColumns are the columns that are read of a memory m; the parameter is the model.
const memoryColumns = `m.memory, m.content, m.tags, m.metadata, m.source, m.at, m.sequence,
	EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.id AND v.model = ?)`

// scanMemory reads memoryColumns, and the columns that the query has after them.
func scanMemory(row interface{ Scan(into ...any) error }, scope eventlog.MemoryScope, more ...any) (readmodel.Memory, error) {
	m := readmodel.Memory{Scope: scope, EmbeddingStatus: readmodel.EmbeddingPending}
	var tags, metadata, source sql.NullString
	var sequence int64
	var embedded bool
	into := []any{&m.ID, &m.Content, &tags, &metadata, &source, &m.CreatedAt, &sequence, &embedded}
	if err := row.Scan(append(into, more...)...); err != nil {
		return m, err
	}
	m.Sequence = uint64(sequence)
	if embedded {
		m.EmbeddingStatus = readmodel.EmbeddingComplete
	}
	if metadata.Valid {
		m.Metadata = json.RawMessage(metadata.String)
	}
	return m, errors.Join(parsed(tags, &m.Tags), parsed(source, &m.Source))
}

func parsed(text sql.NullString, into any) error {
	if !text.Valid {
		return nil
	}
	return json.Unmarshal([]byte(text.String), into)
}

// scopeNumber returns 0 for a scope without memories.
func scopeNumber(ctx context.Context, tx *sql.Tx, scope eventlog.MemoryScope) (id int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT id FROM scopes WHERE log = ?", scope.LogID()).Scan(&id)
	return id, ignoreNoRows(err)
}

// Memory implements readmodel.Memories.
func (m *Models) Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (readmodel.Answer[readmodel.Memory], error) {
	var none error
	a, err := ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (readmodel.Memory, error) {
		const text = "SELECT " + memoryColumns + " FROM scopes s JOIN memories m ON m.scope = s.id WHERE s.log = ? AND m.memory = ?"
		found, err := scanMemory(tx.QueryRowContext(ctx, text, model, scope.LogID(), id), scope)
		if !errors.Is(err, sql.ErrNoRows) {
			return found, err
		}
		none = readmodel.ErrNoMemory
		var forgotten bool
		const was = "SELECT EXISTS (SELECT 1 FROM scopes s JOIN forgotten f ON f.scope = s.id WHERE s.log = ? AND f.memory = ?)"
		if err = tx.QueryRowContext(ctx, was, scope.LogID(), id).Scan(&forgotten); forgotten {
			none = readmodel.ErrForgotten
		}
		return readmodel.Memory{}, err
	})
	return a, cmp.Or(err, none)
}

// ListMemories implements readmodel.Memories.
func (m *Models) ListMemories(
	ctx context.Context, scope eventlog.MemoryScope, model string, p readmodel.Paging,
) (readmodel.Answer[readmodel.MemoryPage], error) {
	p, err := p.Check()
	if err != nil {
		return readmodel.Answer[readmodel.MemoryPage]{}, err
	}
	return ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (found readmodel.MemoryPage, err error) {
		found.Page = readmodel.Page[readmodel.Memory]{Items: []readmodel.Memory{}, Offset: p.Offset, Limit: p.Limit}
		id, err := scopeNumber(ctx, tx, scope)
		if err != nil || id == 0 {
			return found, err
		}
		const count = "SELECT s.memories, t.head FROM scopes s JOIN trees t ON t.root = s.log WHERE s.id = ?"
		if err := tx.QueryRowContext(ctx, count, id).Scan(&found.Total, &found.Head); err != nil {
			return found, err
		}
		const text = "SELECT " + memoryColumns + " FROM memories m WHERE m.scope = ? ORDER BY m.sequence DESC, m.id DESC LIMIT ? OFFSET ?"
		err = each(ctx, tx, text, []any{model, id, p.Limit, p.Offset}, func(row *sql.Rows) error {
			memory, err := scanMemory(row, scope)
			found.Items = append(found.Items, memory)
			return err
		})
		found.HasMore = found.Offset+len(found.Items) < found.Total
		return found, err
	})
}

// PendingMemories implements readmodel.Memories.
func (m *Models) PendingMemories(
	ctx context.Context, model string, after readmodel.PendingCursor, limit int,
) (readmodel.Answer[readmodel.Pending], error) {
	return ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (readmodel.Pending, error) {
		found := readmodel.Pending{Heads: map[string]uint64{}}
		// A scope whose memories all have vectors is skipped by its counts alone.
		const text = "SELECT " + memoryColumns + `, s.log, (SELECT head FROM trees WHERE root = s.log)
			FROM scopes s JOIN memories m ON m.scope = s.id
			WHERE s.memories > coalesce((SELECT vectors FROM models WHERE scope = s.id AND model = ?), 0)
			AND s.log >= ? AND (s.log > ? OR m.sequence > ?)
			AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.memory = m.id AND v.model = ?)
			ORDER BY s.log, m.sequence, m.id LIMIT ?`
		args := []any{model, model, after.Log, after.Log, int64(after.Sequence), model, limit}
		return found, each(ctx, tx, text, args, func(row *sql.Rows) error {
			var log string
			var head uint64
			memory, err := scanMemory(row, eventlog.MemoryScope{}, &log, &head)
			memory.Scope, _ = eventlog.MemoryScopeOf(log)
			found.Items, found.Heads[log] = append(found.Items, memory), head
			return err
		})
	})
}
