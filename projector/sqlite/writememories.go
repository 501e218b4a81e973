package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel/words"
)

const (
	// maxTerms bounds the counts of terms that are gathered before they are written.
	maxTerms = 100_000
	// scopeBatch bounds the records of one scope that a transaction holds while scopes
	// are compared.
	scopeBatch = 2_000
)

// remember applies a record of a memory scope. Its rows are written at once, in the
// transaction that the next commit ends: there is nothing to fold.
func (p *projection) remember(ctx context.Context, f eventlog.Change) error {
	began := time.Now()
	defer func() { p.spent += time.Since(began) }()
	head, err := p.headOf(f.Session)
	if err != nil || f.Sequence <= head {
		return err
	}
	first := f.Linked && f.Previous == 0
	if first && head > 0 { // an erased scope is used again
		p.remove(f.Session)
	}
	if f.Err != nil || !first && (head == 0 || f.Linked && f.Previous != head) {
		return p.load(ctx, f)
	}
	return p.memorize(f.Session, f.Record)
}

// readMemories applies the records of a scope that come after those in the file. Errors:
// as eventlog.Log.Read; errStore.
func (p *projection) readMemories(ctx context.Context, log string) error {
	head, err := p.headOf(log)
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if head > 0 {
		same, err := p.sameLog(ctx, log)
		if err != nil {
			return err
		}
		if !same {
			p.remove(log)
			head = 0
		}
	}
	n := 0
	for r, err := range p.m.feed.Read(ctx, log, head, 0) {
		if err != nil {
			return err
		}
		if err := p.memorize(log, r); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
		if n++; n%scopeBatch == 0 && p.comparing {
			if err := p.commit(); err != nil {
				return fmt.Errorf("%w: %w", errStore, err)
			}
		}
	}
	if _, was := p.stuck[log]; !was {
		return nil
	}
	if err := p.transact(); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if err := p.exec("DELETE FROM parked WHERE root = ? AND stuck = 1", log); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// sameLog reports whether a scope's log still begins with the same record. The log of a
// scope that was erased and is used again does not.
func (p *projection) sameLog(ctx context.Context, log string) (bool, error) {
	var first int64
	if err := p.row("SELECT first FROM scopes WHERE log = ?", []any{log}, &first); err != nil {
		return false, fmt.Errorf("%w: %w", errStore, err)
	}
	for r, err := range p.m.feed.Read(ctx, log, 0, 0) {
		return err == nil && r.Sequence == uint64(first), err
	}
	return false, nil
}

// memorize writes the rows of a scope's record. A record that can't be decoded is listed;
// the others are not affected.
func (p *projection) memorize(log string, r eventlog.Record) error {
	if err := p.transact(); err != nil {
		return err
	}
	if p.removed[log] {
		if p.deleteTree(log); p.err != nil {
			return p.err
		}
		delete(p.removed, log)
		p.remain()
	}
	s, err := p.scopeOf(log, r.Sequence)
	if err != nil {
		return err
	}
	s.head = r.Sequence
	if r.Kind != eventlog.KindFact {
		return nil
	}
	f, err := eventlog.DecodeFact(r.Payload)
	if err != nil {
		return p.exec("INSERT OR REPLACE INTO parked (root, sequence, stuck, type, reason) VALUES (?, ?, 0, ?, ?)",
			log, int64(r.Sequence), r.Type, err.Error())
	}
	switch f := f.(type) {
	case *fact.MemorySaved:
		err = p.saveMemory(s, r.Sequence, f)
	case *fact.MemoryEmbedded:
		err = p.embedMemory(s, f)
	case *fact.MemoryForgotten:
		err = p.forgetMemory(s, f.MemoryID)
	}
	if err != nil || len(s.terms) < maxTerms {
		return err
	}
	p.writeScopes()
	return p.err
}

func (p *projection) saveMemory(s *scope, sequence uint64, f *fact.MemorySaved) error {
	insert, err := p.stmt(`INSERT INTO memories (scope, memory, content, tags, metadata, source, at, sequence)
		SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM forgotten WHERE scope = ? AND memory = ?) ON CONFLICT DO NOTHING`)
	if err != nil {
		return err
	}
	tags, err := optional(f.Tags, len(f.Tags) > 0)
	if err != nil {
		return err
	}
	source, err := optional(f.Source, f.Source != nil)
	if err != nil {
		return err
	}
	metadata := sql.NullString{String: string(f.Metadata), Valid: len(f.Metadata) > 0}
	done, err := insert.Exec(s.id, f.MemoryID, f.Content, tags, metadata, source, f.Timestamp, int64(sequence), s.id, f.MemoryID)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 { // it is already there, or was forgotten
		return err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return err
	}
	terms := words.Terms(f.Content + "\n" + strings.Join(f.Tags, "\n"))
	s.count(terms, 1)
	return p.exec("INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)", id, s.joined(terms))
}

// optional returns a value's JSON, or NULL.
func optional(v any, there bool) (text sql.NullString, err error) {
	if !there {
		return text, nil
	}
	raw, err := json.Marshal(v)
	return sql.NullString{String: string(raw), Valid: true}, err
}

// embedMemory writes a memory's vector. It does nothing if the memory was forgotten
// meanwhile.
func (p *projection) embedMemory(s *scope, f *fact.MemoryEmbedded) error {
	var memory int64
	err := p.row("SELECT id FROM memories WHERE scope = ? AND memory = ?", []any{s.id, f.MemoryID}, &memory)
	if err != nil {
		return ignoreNoRows(err)
	}
	if err := p.deleteVectors(s, "memory = ? AND model = ?", memory, f.Model); err != nil {
		return err
	}
	c := s.models[f.Model]
	c.vectors++
	s.models[f.Model] = c
	return p.exec("INSERT INTO vectors (scope, memory, model, vector) VALUES (?, ?, ?, ?)", s.id, memory, f.Model, f.Vector.Bytes())
}

// deleteVectors removes vectors of a scope's memories.
func (p *projection) deleteVectors(s *scope, where string, args ...any) error {
	return p.each("DELETE FROM vectors WHERE "+where+" RETURNING model", args, func(row *sql.Rows) error {
		var model string
		err := row.Scan(&model)
		c := s.models[model]
		c.vectors--
		c.removed++
		s.models[model] = c
		p.remain()
		return err
	})
}

// forgetMemory removes everything of a memory except its id.
func (p *projection) forgetMemory(s *scope, memory string) error {
	p.put("INSERT OR IGNORE INTO forgotten (scope, memory) VALUES (?, ?)", s.id, memory)
	var id int64
	var terms string
	err := p.row("SELECT m.id, t.terms FROM memories m JOIN memory_terms t ON t.rowid = m.id WHERE m.scope = ? AND m.memory = ?",
		[]any{s.id, memory}, &id, &terms)
	if err != nil {
		return ignoreNoRows(err)
	}
	if err := p.deleteVectors(s, "memory = ?", id); err != nil {
		return err
	}
	s.count(s.split(terms), -1)
	p.remain()
	p.put("DELETE FROM memory_terms WHERE rowid = ?", id)
	p.put("DELETE FROM memories WHERE id = ?", id)
	return p.err
}
