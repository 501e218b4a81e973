package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

const (
	// tidyEvery is the least time between two searches for sessions that are gone;
	// tidyShare is the share of the time that they may take.
	tidyEvery = 100 * time.Millisecond
	tidyShare = 0.05
)

// tidyIn is how long to wait until the next one.
func (p *projection) tidyIn() time.Duration { return max(time.Until(p.tidyNext), 0) }

// tidy catches up on removals and records that the feed did not deliver. It removes the
// rows of sessions that are not in the log any more, and folds sessions whose last
// records are only in segments, because a purge was faster than the feed.
func (p *projection) tidy(ctx context.Context) error {
	if !p.gaps || p.tidyIn() > 0 {
		return nil
	}
	began := time.Now()
	defer func() {
		took := float64(time.Since(began))
		p.tidyNext = time.Now().Add(max(tidyEvery, time.Duration(took/tidyShare)))
	}()
	var known []string
	err := p.each("SELECT root FROM trees UNION SELECT root FROM parked", nil, func(row *sql.Rows) error {
		var root string
		err := row.Scan(&root)
		known = append(known, root)
		return err
	})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	if len(known) > 0 {
		for root, err := range p.m.feed.Sessions(ctx) {
			if err != nil {
				return err
			}
			there[root] = true
		}
	}
	for _, root := range known {
		if there[root] {
			continue
		}
		if _, err := p.m.feed.Head(ctx, root); errors.Is(err, eventlog.ErrSessionNotFound) {
			p.remove(root)
		} else if err != nil {
			return err
		}
	}
	ends, err := p.m.feed.Spans(ctx)
	if err != nil {
		return err
	}
	for i, end := range ends {
		if p.holes[i] > 0 && end.First > p.holes[i] {
			if err := p.compare(ctx); err != nil {
				return err
			}
			break
		}
	}
	clear(p.holes)
	p.gaps = false
	return p.commit()
}

// keepHoles stores the holes, since the positions that are written in the same
// transaction are after them.
func (p *projection) keepHoles() {
	if now := p.json(p.holes); now != p.kept {
		p.kept = now
		p.keep(p.setMeta(metaHoles, p.kept))
	}
}

// recallRest reads the holes and other unfinished work from the file.
func (p *projection) recallRest(partitions int) (err error) {
	p.holes = make([]uint64, partitions)
	if p.kept, err = p.meta(metaHoles); err != nil {
		return err
	}
	if p.kept != "" {
		if err := json.Unmarshal([]byte(p.kept), &p.holes); err != nil || len(p.holes) > partitions {
			return fmt.Errorf("%w: it has no list of the records that it lacks", errDiscard)
		}
		p.holes = append(p.holes, make([]uint64, partitions-len(p.holes))...) // the log has grown since
	}
	return p.each("SELECT DISTINCT root FROM parked WHERE stuck = 1", nil, func(row *sql.Rows) error {
		var root string
		err := row.Scan(&root)
		p.stuck[root] = time.Time{}
		return err
	})
}
