package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

const (
	// maxBatch is how many records one transaction holds at most.
	maxBatch = 20_000
	// Records are gathered for one transaction for at least gatherLeast if
	// nobody waits for them, and for gatherShare times as long as the one
	// before took, at most gatherMost: writing must not take the machine from
	// those who append.
	gatherLeast = 25 * time.Millisecond
	gatherMost  = time.Second
	gatherShare = 5
	// inBuffer is how many records of all feeds may wait for the writer.
	inBuffer = 64
	// checkEvery is how often the file is looked for, and what is left to do
	// is tried again.
	checkEvery = time.Second
)

// projection is one try of keeping the file in step: whatever goes wrong, the
// next one begins with what is in the file.
type projection struct {
	m         *Models
	file      *file
	cache     *foldCache
	positions []position
	// removed are the trees whose rows go in the next transaction.
	removed map[string]bool
	// stuck are the trees that can't be folded, and since when that is known.
	stuck map[string]time.Time
	parks []park
	// gaps: records that were not fed are gone, and sessions may be with them.
	gaps bool
	// comparing: whatever is committed, all is compared again if this breaks off.
	comparing bool
	// holes are where the first record was that was not fed, by partition; 0:
	// all were, or have been looked for. Kept is what the file has of them.
	holes []uint64
	kept  string
	// tidyNext is when sessions are looked for that may be gone.
	tidyNext time.Time
	// leavings: erased scopes may have left rows, which clearPart removes next
	// at clearNext.
	leavings  bool
	clearNext time.Time
	upkept    time.Time            // when there was time for more than the feeds
	overwal   bool                 // the write-ahead log may hold what was removed
	walBusy   bool                 // a reader was in the way of emptying it
	target    []uint64             // positions from which on nothing is rebuilt any more
	took      time.Duration        // by the last transaction
	begun     bool                 // a transaction is open
	spent     time.Duration        // in it so far
	scopes    map[string]*scope    // that it has touched, by log
	forgot    []int64              // scopes that it has removed
	stmts     map[string]*sql.Stmt // of the connection that writes, by text
}

// position is how far a partition is.
type position struct {
	at     uint64
	digest string // of the record there; empty: not known
	unsure bool   // whether the log still has that record there
}

// sure is up to where the file is for certain what the log says.
func (p position) sure() uint64 {
	if p.unsure {
		return p.at - 1
	}
	return p.at
}

// park is a record on which a tree is stuck.
type park struct {
	root, typ, reason string
	sequence          uint64
}

// fed is what a feed says.
type fed struct {
	partition int
	eventlog.Fed
	err error
}

// project keeps the file in step until something goes wrong.
func (m *Models) project(ctx context.Context, f *file) error {
	select {
	case <-m.bad: // it was about the file before
	default:
	}
	p := &projection{
		m: m, file: f, cache: newFoldCache(m.opts.MaxFolds, m.opts.MaxFoldBytes), removed: map[string]bool{},
		stuck: map[string]time.Time{}, stmts: map[string]*sql.Stmt{}, scopes: map[string]*scope{}, gaps: true, leavings: true, overwal: true,
	}
	defer p.closeStatements()
	defer p.rollback() //nolint:errcheck // the connection undoes it, if this doesn't
	if err := p.begin(ctx); err != nil {
		return classed(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	in := make(chan fed, inBuffer)
	done := make(chan struct{}, len(p.positions))
	defer func() {
		cancel()
		for range p.positions {
			<-done
		}
	}()
	for i, at := range p.positions {
		from := at.sure()
		go func() {
			defer func() { done <- struct{}{} }()
			for r, err := range m.feed.Feed(ctx, i, from) {
				select {
				case in <- fed{i, r, err}:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return classed(p.follow(ctx, in))
}

// errGrown: the log has more partitions than are followed.
var errGrown = errors.New("the log has grown")

// follow takes what the feeds say, a transaction after the other.
func (p *projection) follow(ctx context.Context, in <-chan fed) error {
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		if p.m.feed.Info().Partitions > len(p.positions) {
			return errGrown
		}
		var tidy, part <-chan time.Time
		if p.gaps {
			tidy = time.After(p.tidyIn())
		}
		if p.leavings {
			part = time.After(time.Until(p.clearNext))
		}
		select {
		case r := <-in:
			if err := p.gather(ctx, r, in); err != nil {
				return err
			}
			if err := p.commit(); err != nil {
				return err
			}
		case <-check.C:
			if !p.file.there() {
				return fmt.Errorf("%w: it was removed", errDiscard)
			}
			p.walBusy = false
			if err := p.retry(ctx); err != nil {
				return err
			}
		case <-tidy:
		case <-part:
		case <-p.m.kick:
		case err := <-p.m.bad:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if len(in) > 0 && time.Since(p.upkept) < checkEvery {
			continue
		}
		p.upkept = time.Now()
		if err := p.tidy(ctx); err != nil {
			return err
		}
		if err := p.clearPart(); err != nil {
			return err
		}
		if p.overwal && !p.walBusy {
			done, err := p.file.truncate(ctx)
			if err != nil {
				return err
			}
			p.overwal, p.walBusy = !done, !done
		}
	}
}

// gather applies a record and what else comes soon.
func (p *projection) gather(ctx context.Context, r fed, in <-chan fed) error {
	enough := time.NewTimer(min(max(gatherLeast, gatherShare*p.took), gatherMost))
	defer enough.Stop()
	hurry := time.NewTimer(p.took)
	defer hurry.Stop()
	var kick <-chan struct{} // whoever waits may have half of the time
	for n := 1; ; n++ {
		if r.err != nil {
			return r.err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.apply(ctx, r.partition, r.Fed); err != nil {
			return err
		}
		if n == maxBatch {
			return nil
		}
		select {
		case <-enough.C:
			return nil
		default:
		}
		for waiting := true; waiting; {
			select {
			case r = <-in:
				waiting = false
			case <-enough.C:
				return nil
			case <-hurry.C:
				kick = p.m.kick
			case <-kick:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// errOtherLog: the file is of records that the log does not have.
var errOtherLog = fmt.Errorf("%w: the log has another record at its position", errDiscard)

// apply takes over one record, or a position.
func (p *projection) apply(ctx context.Context, partition int, f eventlog.Fed) error {
	if len(f.Payload) > largeRecord {
		p.m.large.Store(true)
		defer p.m.large.Store(false)
	}
	at := &p.positions[partition]
	at.unsure = false
	if f.Sequence <= at.at {
		is := digest(f)
		if f.Sequence == at.at && at.digest != "" && is != "" && at.digest != is {
			return errOtherLog
		}
		return nil
	}
	if f.Session == "" || f.Sequence != at.at+1 {
		p.gaps = true
		if p.holes[partition] == 0 {
			p.holes[partition] = at.at + 1
		}
	}
	*at = position{at: f.Sequence, digest: digest(f)}
	if f.Session == "" {
		return nil
	}
	if f.Kind == eventlog.KindFact && f.Type == erasedType {
		p.remove(f.Session)
		return nil
	}
	if eventlog.IsMemoryLog(f.Session) {
		return p.remember(ctx, f)
	}
	head, err := p.headOf(f.Session)
	if err != nil || f.Sequence <= head {
		return err
	}
	h := p.cache.get(f.Session)
	switch {
	case f.Err == nil && f.Linked && f.Previous == 0:
		if head > 0 { // the id of an erased session is used again
			p.remove(f.Session)
		}
		h = p.cache.put(f.Session, new(projector.Tree))
	case f.Err != nil || h == nil || f.Linked && f.Previous != h.tree.Head:
		return p.load(ctx, f)
	}
	if err := fold(h.tree, f.Record); err != nil {
		p.park(f, err)
		return nil
	}
	h.dirty = true
	p.cache.grow(h, len(f.Payload))
	return nil
}

var erasedType = (*eventlog.Erased)(nil).Type()

// fold applies a record; a panic is an error.
func fold(t *projector.Tree, r eventlog.Record) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	projector.Apply(t, r)
	return nil
}

// remove forgets a tree, now and in the file.
func (p *projection) remove(root string) {
	p.cache.drop(root)
	delete(p.scopes, root)
	p.removed[root] = true
	delete(p.stuck, root)
}

// headOf returns up to where a tree or a memory scope is known, 0 if it is not.
func (p *projection) headOf(root string) (head uint64, err error) {
	if h := p.cache.get(root); h != nil {
		return h.tree.Head, nil
	}
	if p.removed[root] {
		return 0, nil
	}
	if s := p.scopes[root]; s != nil {
		return s.head, nil
	}
	var at int64
	err = p.row("SELECT head FROM trees WHERE root = ?", []any{root}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return uint64(at), err
}

// digest tells a record from another one at its place.
func digest(f eventlog.Fed) string {
	if f.Session == "" || f.Err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %s %d ", f.Writer, f.Ordinal, f.Session, f.Time.UnixNano())
	h.Write(f.Payload)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
