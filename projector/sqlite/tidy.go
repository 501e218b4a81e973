package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
)

const (
	// tidyEvery is the least time between two searches for sessions that are gone;
	// tidyShare is the share of the time that they may take.
	tidyEvery = 100 * time.Millisecond
	tidyShare = 0.05
	// overwritePages is how many pages of the file are looked through at once;
	// overwriteShare is the share of the time that this may take.
	overwritePages = 500
	overwriteShare = 0.2
	// maxPages is the number of pages of which each number's first byte is less than any
	// kind of page.
	maxPages = 1 << 25
)

// remains is how far the bytes of removed rows are overwritten. SQLite's secure_delete
// overwrites a row where it is when it is removed. But when SQLite had moved rows from one
// page to another before, the first one kept a copy of them between its list of rows and its
// rows. So all pages are looked through after a removal, in parts. The write-ahead log, which
// has earlier versions of pages, is emptied after the removal and after each part.
type remains struct {
	all   bool      // rows were removed since the last pass began
	after int64     // the page that was looked through last
	pages int64     // how many are left
	wal   bool      // the write-ahead log is not emptied yet
	busy  bool      // a reader kept it from being emptied
	next  time.Time // when the next part may begin
	clean bool      // the file says that nothing is left
	// tooLarge: the file has more than maxPages, which are not looked through.
	tooLarge bool
}

// remain notes that rows are removed in this transaction.
func (p *projection) remain() {
	p.remains.all, p.remains.wal = true, true
	if p.remains.clean {
		p.remains.clean = false
		p.keep(p.setMeta(metaOverwritten, ""))
	}
}

// overwrite overwrites a part of what is left of removed rows, if it is time. Rows that are
// removed meanwhile are left to another pass, so that each pass comes to an end.
func (p *projection) overwrite(ctx context.Context) error {
	r := &p.remains
	if r.all && r.pages == 0 {
		if err := p.row("PRAGMA page_count", nil, &r.pages); err != nil {
			return err
		}
		if r.all, r.wal = false, true; r.pages >= maxPages {
			r.pages, r.tooLarge = 0, true
			p.m.opts.Logger.Warn("the read models' file is too large to overwrite what is left of removed rows: build it again", "file", p.m.opts.Path)
		}
	}
	if r.pages > 0 && time.Until(r.next) <= 0 {
		began := time.Now()
		if err := p.overwritePart(); err != nil {
			return err
		}
		r.wal, r.next = true, time.Now().Add(time.Duration(float64(time.Since(began))/overwriteShare))
	}
	if r.wal && !r.busy {
		done, err := p.file.truncate(ctx)
		if r.wal, r.busy = !done, !done; err != nil {
			return err
		}
	}
	if r.all || r.pages > 0 || r.wal || r.clean || r.tooLarge {
		return nil
	}
	if err := p.transact(); err != nil {
		return err
	}
	r.clean = true
	p.keep(p.setMeta(metaOverwritten, "1"))
	return p.commit()
}

// overwritePart looks through some pages.
func (p *projection) overwritePart() error {
	if err := p.transact(); err != nil {
		return err
	}
	r := &p.remains
	dirty := map[int64][]byte{}
	last := r.after + min(r.pages, overwritePages)
	const part = "WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT n.i, d.data FROM n CROSS JOIN sqlite_dbpage d ON d.pgno = n.i"
	var seen int64
	err := p.each(part, []any{r.after + 1, last}, func(row *sql.Rows) error {
		var number int64
		var page sql.RawBytes
		if err := row.Scan(&number, &page); err != nil {
			return err
		}
		seen++
		if from, to := gap(number, page); slices.ContainsFunc(page[from:to], func(b byte) bool { return b != 0 }) {
			page := bytes.Clone(page)
			clear(page[from:to])
			dirty[number] = page
		}
		return nil
	})
	if err != nil {
		return err
	}
	for number, page := range dirty {
		p.put("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?", page, number)
	}
	if r.pages -= seen; seen < last-r.after { // the file's end: the rest is at its beginning
		last = 0
	}
	r.after = last
	return p.commit()
}

// gap is where a page's bytes that nothing uses begin and end: between the numbers that tell where
// its rows are, and the rows. Pages without rows have none: those that go on with a long row,
// and free ones, begin with the number of another page.
func gap(number int64, page []byte) (from, to int) {
	at := 0
	if number == 1 {
		at = 100 // after the file's header
	}
	if len(page) < at+12 {
		return 0, 0
	}
	switch page[at] {
	case 10, 13: // of an index, of a table
		from = at + 8
	case 2, 5: // the same, of pages
		from = at + 12
	default:
		return 0, 0
	}
	from += 2 * int(binary.BigEndian.Uint16(page[at+3:]))
	to = int(binary.BigEndian.Uint16(page[at+5:]))
	if to < from || to > len(page) {
		return 0, 0
	}
	return from, to
}

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
	overwritten, err := p.meta(metaOverwritten)
	if err != nil {
		return err
	}
	p.remains.clean = overwritten == "1"
	p.remains.all = !p.remains.clean
	return p.each("SELECT DISTINCT root FROM parked WHERE stuck = 1", nil, func(row *sql.Rows) error {
		var root string
		err := row.Scan(&root)
		p.stuck[root] = time.Time{}
		return err
	})
}
