package maintenance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// marksAtOnce is how many marks one request asks for.
	marksAtOnce = 200
	// forgetBudget bounds how long each call of FinishErasures removes marks of erasures
	// that were done long ago: each costs the server a block. The next calls remove the
	// others.
	forgetBudget = time.Second
	// forgetRetry is the pause before a mark is tried again that could not be removed.
	forgetRetry = time.Minute
)

// doneMark is what a node keeps of a mark in state done.
type doneMark struct {
	partition int
	session   string
	due       time.Time // when it must be removed
	parts     uint64    // blobs were checked for late parts up to here
}

// doneMarks keeps which marks are in state done, so that a node that finishes erasures
// need not read each of them again. It is bounded by the number of marks.
type doneMarks struct {
	mu sync.Mutex
	of map[int]map[string]doneMark // by partition and session
}

// others drops entries that are no longer true, and returns the sessions whose marks must
// be read; marks has the number of messages on each mark's subject. A mark in state done
// is one message, and each change adds one.
func (d *doneMarks) others(p int, marks map[string]uint64) (sessions []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[string]doneMark{}
	for session, messages := range marks {
		if m, ok := d.of[p][session]; ok && messages == 1 {
			known[session] = m
		} else {
			sessions = append(sessions, session)
		}
	}
	if d.of == nil {
		d.of = map[int]map[string]doneMark{}
	}
	d.of[p] = known
	slices.Sort(sessions)
	return sessions
}

// add keeps a mark.
func (d *doneMarks) add(m doneMark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of[m.partition][m.session] = m
}

// drop removes a mark.
func (d *doneMarks) drop(m doneMark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of[m.partition], m.session)
}

// due returns the marks that must be removed, the longest due first.
func (d *doneMarks) due(now time.Time) (due []doneMark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, marks := range d.of {
		due = slices.AppendSeq(due, maps.Values(marks))
	}
	due = slices.DeleteFunc(due, func(m doneMark) bool { return now.Before(m.due) })
	slices.SortFunc(due, func(a, b doneMark) int { return a.due.Compare(b.due) })
	return due
}

// undone returns those of a partition's sessions whose marks are not in state done, or
// could not be read here. It reads many at once. A replica that lags returns an older
// mark, of an erasure that has ended, only if another one has begun since, which adds
// messages.
func (l *Maintenance) undone(ctx context.Context, p int, sessions []string, marks map[string]uint64) (undone []string) {
	var single []string
	for _, session := range sessions {
		if marks[session] == 1 {
			single = append(single, session)
		} else {
			undone = append(undone, session)
		}
	}
	for some := range slices.Chunk(single, marksAtOnce) {
		due, err := l.dueTimes(ctx, p, some)
		for _, session := range some {
			if at, done := due[session]; err == nil && done {
				l.done.add(doneMark{partition: p, session: session, due: at})
			} else {
				undone = append(undone, session)
			}
		}
	}
	return undone
}

// dueTimes returns, for those of the sessions whose erasures are done, when their marks
// must be removed.
func (l *Maintenance) dueTimes(ctx context.Context, p int, sessions []string) (due map[string]time.Time, err error) {
	bySubject := map[string]string{}
	for _, session := range sessions {
		bySubject[layout.ErasedSubject(session, p)] = session
	}
	due = map[string]time.Time{}
	err = l.Step(ctx, "marks", func(ctx context.Context) error {
		messages, _, err := l.GetMany(ctx, layout.SegmentStream(p), len(sessions), map[string]any{
			"multi_last": slices.Collect(maps.Keys(bySubject)), "max_bytes": link.PageBytes,
		})
		for _, answer := range messages {
			m, merr := wire.DirectMessage(answer)
			session, ok := bySubject[m.Subject]
			var e store.Erasing
			if merr == nil && ok && e.Read(m) == nil && e.Done {
				due[session] = m.At.Add(store.DoneFor)
			}
		}
		return err
	})
	return due, err
}

// forgetDue removes marks that are due, at least one, for as long as the budget allows.
func (l *Maintenance) forgetDue(ctx context.Context, now time.Time) error {
	var failed []error
	began := time.Now()
	for _, m := range l.done.due(now) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		started := time.Now()
		parts, err := l.forgetDone(ctx, m.session, m.parts, now, began.Add(l.forgetFor))
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("session %q: %w", m.session, err))
			m.due = now.Add(forgetRetry)
			l.done.add(m)
		case parts > 0:
			m.parts = parts
			l.done.add(m)
		default:
			l.done.drop(m)
		}
		l.Yield(ctx, started)
		if time.Since(began) >= l.forgetFor {
			break
		}
	}
	return errors.Join(failed...)
}

// forgetDone removes the mark of an erasure that was done long ago, and before that
// everything that arrived after it and was not read since. It checks the parts of blobs
// after parts. If the time ends before all were checked, it returns the last one that
// was.
func (l *Maintenance) forgetDone(ctx context.Context, session string, parts uint64, now, until time.Time) (uint64, error) {
	e, err := l.ErasingOf(ctx, session)
	if err != nil || !e.Done || now.Sub(e.Time) < store.DoneFor {
		return 0, err
	}
	if _, err := l.Head(ctx, session); err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return 0, err
	}
	if _, err := l.EraseLate(ctx, session, e); err != nil {
		return 0, err
	}
	if parts, err = l.eraseLateBlobs(ctx, session, e.Tombstone, parts, until); err != nil || parts > 0 {
		return parts, err
	}
	again, err := l.ErasingOf(ctx, session)
	if err != nil || again.At != e.At { // something was found, and must be overwritten first
		return 0, err
	}
	return 0, l.ForgetErasing(ctx, session, e)
}

// eraseLateBlobs removes parts of blobs that were sent before a session's tombstone and
// stored after its erasure had looked for them. It loads each part, which takes time: if
// that ends, it returns the last part that it has checked, else 0.
func (l *Maintenance) eraseLateBlobs(ctx context.Context, session string, tombstone, after uint64, until time.Time) (uint64, error) {
	var late []store.Part
	for at := after; ; {
		m, err := l.LeaderGet(ctx, layout.BlobStream, map[string]any{"seq": at + 1, "next_by_subj": l.BlobPrefix(session) + ">"})
		if errors.Is(err, link.ErrNoMessage) {
			return 0, l.WipeAll(ctx, session, late)
		}
		if err != nil {
			return after, errors.Join(err, l.WipeAll(ctx, session, late))
		}
		at = m.Sequence
		for _, name := range []string{wire.HeaderAfter, wire.HeaderSince} { // a part has one of them
			if n, err := strconv.ParseUint(wire.First(m.Header, name), 10, 64); err == nil && n < tombstone {
				late = append(late, store.Single(layout.BlobStream, m.Subject, at))
			}
		}
		if !time.Now().Before(until) {
			return at, l.WipeAll(ctx, session, late)
		}
	}
}
