package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

const (
	// maxBatch is how many records one transaction holds at most.
	maxBatch = 20_000
	// Records are gathered for one transaction for at least gatherLeast if no query waits
	// for them, and for gatherShare times as long as the previous transaction took, at
	// most gatherMost: writing must leave the processor to appends.
	gatherLeast = 25 * time.Millisecond
	gatherMost  = time.Second
	gatherShare = 5
	// inBuffer is how many records of all feeds may wait for the writer.
	inBuffer = 64
	// checkEvery is how often the writer checks that the file still exists, and retries
	// unfinished work.
	checkEvery = time.Second
)

// projection is one attempt to keep the file in step. After any error the next attempt
// starts from what the file has.
type projection struct {
	m         *Models
	file      *file
	cache     *foldCache
	positions []position
	// removed are the trees whose rows the next transaction deletes.
	removed map[string]bool
	// stuck are the trees that can't be folded, with the time at which that was noticed.
	stuck map[string]time.Time
	parks []park
	// gaps: records were removed before the feed delivered them, and whole sessions may
	// be gone with them.
	gaps bool
	// comparing: all sessions are compared again if this attempt is interrupted, whatever
	// it has committed.
	comparing bool
	// holes are the sequences of the first record that the feed did not deliver, by
	// partition; 0: all were delivered, or have been looked for. kept is the value in the
	// file.
	holes []uint64
	kept  string
	// tidyNext is when to look next for sessions that may be gone.
	tidyNext time.Time
	// leavings: erased scopes may have rows left, which clearPart removes from clearNext
	// on.
	leavings  bool
	clearNext time.Time
	upkept    time.Time // when work other than the feeds was last done
	remains   remains
	target    []uint64             // positions at which the rebuild is complete
	took      time.Duration        // duration of the last transaction
	begun     bool                 // a transaction is open
	err       error                // the first failure of put; it ends the attempt
	spent     time.Duration        // time in the open transaction so far
	scopes    map[string]*scope    // changed in the transaction, by log
	forgot    []int64              // scopes that the transaction has removed
	stmts     map[string]*sql.Stmt // of the writing connection, by text
}

// position is how far the file has followed a partition.
type position struct {
	at     uint64
	digest string // of the record there; empty: unknown
	unsure bool   // the log may have another record there
}

// sure is the sequence up to which the file certainly agrees with the log.
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

// fed is one item of a feed.
type fed struct {
	partition int
	eventlog.Change
	err error
}

// project keeps the file in step until something goes wrong.
func (m *Models) project(ctx context.Context, f *file) error {
	select {
	case <-m.bad: // an error about the previous file
	default:
	}
	p := &projection{
		m: m, file: f, cache: newFoldCache(m.opts.MaxFolds, m.opts.MaxFoldBytes), removed: map[string]bool{},
		stuck: map[string]time.Time{}, stmts: map[string]*sql.Stmt{}, scopes: map[string]*scope{}, gaps: true, leavings: true,
	}
	defer p.closeStatements()
	defer p.rollback() //nolint:errcheck // if it fails, the connection rolls back
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

// follow applies what the feeds deliver, one transaction after the other.
func (p *projection) follow(ctx context.Context, in <-chan fed) error {
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		if p.m.feed.Info().Partitions > len(p.positions) {
			return errGrown
		}
		var tidy, part, pages <-chan time.Time
		if p.gaps {
			tidy = time.After(p.tidyIn())
		}
		if p.leavings {
			part = time.After(time.Until(p.clearNext))
		}
		if p.remains.pages > 0 || p.remains.all {
			pages = time.After(time.Until(p.remains.next))
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
			p.remains.busy = false
			p.cache.shrink(time.Now())
			if err := p.retry(ctx); err != nil {
				return err
			}
		case <-tidy:
		case <-part:
		case <-pages:
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
		if err := p.overwrite(ctx); err != nil {
			return err
		}
	}
}

// gather applies a record and those that follow it soon.
func (p *projection) gather(ctx context.Context, r fed, in <-chan fed) error {
	enough := time.NewTimer(min(max(gatherLeast, gatherShare*p.took), gatherMost))
	defer enough.Stop()
	hurry := time.NewTimer(p.took)
	defer hurry.Stop()
	var kick <-chan struct{} // a waiting query ends the gathering after half of the time
	for n := 1; ; n++ {
		if r.err != nil {
			return r.err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := p.apply(ctx, r.partition, r.Change); err != nil {
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

// errOtherLog: the file has records that the log does not have.
var errOtherLog = fmt.Errorf("%w: the log has another record at its position", errDiscard)

// apply applies one record, or a position.
func (p *projection) apply(ctx context.Context, partition int, f eventlog.Change) error {
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
		if head > 0 { // an erased session's id is used again
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

var erasedType = (*fact.Erased)(nil).Type()

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

// remove drops a tree from memory and from the file.
func (p *projection) remove(root string) {
	p.cache.drop(root)
	delete(p.scopes, root)
	p.removed[root] = true
	delete(p.stuck, root)
	p.parks = slices.DeleteFunc(p.parks, func(k park) bool { return k.root == root }) // written after the removal, it would stay
}

// headOf returns the sequence up to which a tree or a memory scope is known, or 0.
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
	return uint64(at), ignoreNoRows(err)
}

// digest distinguishes a record from another one with the same sequence.
func digest(f eventlog.Change) string {
	if f.Session == "" || f.Err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %s %d ", f.Writer, f.Ordinal, f.Session, f.Time.UnixNano())
	h.Write(f.Payload)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
