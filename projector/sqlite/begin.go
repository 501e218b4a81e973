package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// Keys of table meta.
const (
	metaLog         = "log"         // the name of the log from which the file was made
	metaSyncing     = "syncing"     // sessions are being compared one by one, see sync
	metaHoles       = "holes"       // projection.holes
	metaOverwritten = "overwritten" // "1": nothing is left of removed rows
)

// syncBatch is how many sessions that are compared one transaction holds.
const syncBatch = 100

// begin reads the positions of the file and checks that it was made from this log.
func (p *projection) begin(ctx context.Context) error {
	name, err := p.m.feed.Identity(ctx)
	if err != nil {
		return err
	}
	ends, err := p.m.feed.Spans(ctx)
	if err != nil {
		return err
	}
	grown := false
	switch of, err := p.meta(metaLog); {
	case err != nil:
		return err
	case strings.HasPrefix(name, of+" ") && of != "":
		grown = true
	case of == "":
		p.m.set(func(s *state) { s.rebuilding = true })
		if err := p.setMeta(metaLog, name); err != nil {
			return err
		}
	case of != name:
		return fmt.Errorf("%w: it is of another log", errDiscard)
	}
	p.positions, p.target = make([]position, len(ends)), make([]uint64, len(ends))
	for i, end := range ends {
		p.positions[i].at = max(end.Begins, 1) - 1
	}
	err = p.each("SELECT partition, position, digest FROM positions", nil, func(row *sql.Rows) error {
		var i int
		var at int64
		var digest string
		if err := row.Scan(&i, &at, &digest); err != nil {
			return err
		}
		if i < 0 || i >= len(ends) {
			return fmt.Errorf("%w: the log has fewer partitions", errDiscard)
		}
		p.positions[i] = position{at: uint64(at), digest: digest, unsure: digest != ""}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.recallRest(len(ends)); err != nil {
		return err
	}
	if grown { // after recallRest, which knows fewer partitions
		if err := p.setMeta(metaLog, name); err != nil {
			return err
		}
	}
	syncing, err := p.meta(metaSyncing)
	if err != nil {
		return err
	}
	behind := syncing != ""
	for i, end := range ends {
		p.target[i] = end.Last
		behind = behind || end.First > p.positions[i].at+1 && end.Last > p.positions[i].at
	}
	if behind {
		if err := p.sync(ctx, ends); err != nil {
			return err
		}
	}
	p.moved()
	return nil
}

// sync brings the file to the given ends session by session, for records that the feed
// does not have any more. A sync that was interrupted continues with the sessions that
// still differ.
func (p *projection) sync(ctx context.Context, ends []eventlog.Span) error {
	p.m.set(func(s *state) { s.rebuilding = true })
	if err := p.setMeta(metaSyncing, "1"); err != nil {
		return err
	}
	if err := p.compare(ctx); err != nil {
		return err
	}
	for i, end := range ends {
		p.positions[i] = position{at: end.Last}
	}
	clear(p.holes)
	if err := p.commit(); err != nil {
		return err
	}
	return p.setMeta(metaSyncing, "")
}

// compare folds each session whose rows are not at the log's head.
func (p *projection) compare(ctx context.Context) error {
	p.comparing = true
	defer func() { p.comparing = false }()
	n := 0
	for root, err := range p.m.feed.Sessions(ctx) {
		if err != nil {
			return err
		}
		head, err := p.m.feed.Head(ctx, root)
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			continue
		}
		if err != nil && !errors.Is(err, eventlog.ErrDamaged) {
			return err
		}
		damaged := err != nil
		at, err := p.headOf(root)
		if err != nil {
			return err
		}
		if head == at && !damaged {
			continue
		}
		f := eventlog.Change{Session: root, Record: eventlog.Record{Sequence: head}}
		if err := p.load(ctx, f); err != nil {
			return err
		}
		if n++; n%syncBatch == 0 {
			if err := p.commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// meta returns "" for a key that is not there.
func (p *projection) meta(key string) (value string, err error) {
	err = p.row("SELECT value FROM meta WHERE key = ?", []any{key}, &value)
	return value, ignoreNoRows(err)
}

func (p *projection) setMeta(key, value string) error {
	return p.exec("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", key, value)
}
