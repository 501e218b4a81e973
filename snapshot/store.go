package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/cache"
)

const (
	// DefaultSaveEvery is after how many records a fold is saved at the least.
	DefaultSaveEvery = 500
	// saveShare is how many times the payloads after a saved fold the next one
	// may have: each one is written whole, though mostly not stored again, and
	// that shall not take much longer than to fold those records.
	saveShare = 32
	// anchorBytes is from how many bytes of payloads on a fold is kept in memory
	// however few its records are.
	anchorBytes = 1 << 20
	// headRecords is from how many records on the state at the head is: a producer
	// asks for it with each append.
	headRecords = 16
	// foldTries is how many saved folds are looked at, from the nearest one back,
	// for one that can be used.
	foldTries = 3
)

// StoreOptions configure a store; zero values mean the defaults.
type StoreOptions struct {
	Folds     Folds        // nil: every state is folded from the first record
	SaveEvery int          // records between two saved folds, at least; 0: DefaultSaveEvery
	Logger    *slog.Logger // of what goes wrong with saved folds; nil: silent
	Metrics   *Metrics     // nil: nothing is measured
}

// Store folds sessions of a log.
type Store struct {
	log       eventlog.Log
	opts      StoreOptions
	timelines *cache.Cache[string, keptTimeline]
	anchors   *cache.Cache[string, anchors]
	erasures  atomic.Uint64 // so far
}

// New returns a store on log.
func New(log eventlog.Log, o *StoreOptions) *Store {
	s := &Store{
		log:       log,
		timelines: cache.New[string, keptTimeline](MaxTimelines, MaxTimelineBytes, TimelineIdle),
		anchors:   cache.New[string, anchors](MaxAnchoredSessions, MaxAnchorBytes, AnchorIdle),
	}
	if o != nil {
		s.opts = *o
	}
	if s.opts.SaveEvery <= 0 {
		s.opts.SaveEvery = DefaultSaveEvery
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Head returns the state at the session's head. The caller may fold it on; its
// messages, and everything else that no fold changes, are shared. Errors: as
// eventlog.Log.Read.
func (s *Store) Head(ctx context.Context, session string) (*projector.Tree, error) {
	return s.fold(ctx, session, 0)
}

// At returns the state after all records with sequence <= n, as Head does.
// Errors: as eventlog.Log.Read; a *eventlog.CursorAheadError if n is beyond the head.
func (s *Store) At(ctx context.Context, session string, n uint64) (*projector.Tree, error) {
	if n == 0 {
		if _, err := s.log.Head(ctx, session); err != nil {
			return nil, err
		}
		return new(projector.Tree), nil
	}
	return s.fold(ctx, session, n)
}

// start is what a fold begins with.
type start struct {
	state  *projector.Tree // not shared
	digest string          // of the record at its head
	tip    unsaved
	memory bool // it comes from there

	line    *line
	content int
	old     bool // another version's: nothing of it is kept
}

// folding is a fold that can continue, record by record.
type folding struct {
	state *projector.Tree // not shared
	last  eventlog.Record // the one at its head
	lay   layer
	tip   unsaved
	known uint64 // the records up to here are in tip
	old   bool   // as start.old
}

// take folds the next record.
func (f *folding) take(ctx context.Context, s *Store, session string, r eventlog.Record) {
	projector.Apply(f.state, r)
	f.last = r
	laid := f.lay.see(r, f.state.Clone)
	if r.Sequence <= f.known {
		return
	}
	f.tip.records, f.tip.bytes = f.tip.records+1, f.tip.bytes+len(r.Payload)
	if laid { // far from the last one, others shall find one near
		f.tip = s.saveIfDue(ctx, session, f.tip, f.state, r)
	}
}

// fold continues the nearest state that is kept in memory or is saved, or
// begins with the first record, up to the head if to is 0.
func (s *Store) fold(ctx context.Context, session string, to uint64) (*projector.Tree, error) {
	f, err := s.folded(ctx, session, to)
	if err != nil {
		return nil, err
	}
	return f.state, nil
}

// folded is fold for a caller that folds on.
func (s *Store) folded(ctx context.Context, session string, to uint64) (*folding, error) {
	f, err := s.foldFrom(ctx, session, to)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		s.forgetMemory(session)
	}
	return f, err
}

func (s *Store) foldFrom(ctx context.Context, session string, to uint64) (*folding, error) {
	a, near, tip, head, err := s.anchored(ctx, session, to)
	if err != nil {
		return nil, err
	}
	if head > 0 { // the log need not be asked for it twice
		ctx = eventlog.WithHead(ctx, session, head)
	}
	if a.state != nil && !near {
		near = !s.savedBehind(ctx, session, a.seq(), to)
	}
	if near {
		f, err := s.run(ctx, session, start{
			state: a.state.Clone(), digest: a.digest, tip: tip, memory: true, line: a.line, content: a.content,
		}, to)
		_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
		if !trimmed && !errors.Is(err, errStale) {
			return f, err
		}
		s.forgetMemory(session)
	}
	if s.opts.Folds != nil {
		f, err := s.continued(ctx, session, to, Packed, JSON)
		if f != nil || err != nil {
			return f, err
		}
	}
	f, err := s.run(ctx, session, start{state: new(projector.Tree), line: new(line)}, to)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed && s.opts.Folds != nil {
		// The records before are gone: only a saved fold has their state, of whatever
		// version.
		if again, aerr := s.continued(ctx, session, to, JSON); again != nil && aerr == nil {
			return again, nil
		}
	}
	return f, err
}

// errStale says that a fold that is continued is not of this log.
var errStale = errors.New("snapshot: saved fold is not of this log")

// savedBehind reports whether there is a saved fold between an anchor and what
// is asked for.
func (s *Store) savedBehind(ctx context.Context, session string, anchor, to uint64) bool {
	if s.opts.Folds == nil {
		return false
	}
	all, err := s.opts.Folds.Sequences(ctx, session, Packed, JSON)
	return err == nil && slices.ContainsFunc(all, func(n uint64) bool { return n > anchor && (to == 0 || n <= to) })
}

// left reports whether the caller has left, which is no failure of the saved folds.
func left(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// continued returns nil, nil if there is no saved fold that can be used. Another
// version's are used only if no form but JSON may be.
func (s *Store) continued(ctx context.Context, session string, to uint64, forms ...Form) (*folding, error) {
	limit := to
	if limit == 0 {
		limit = ^uint64(0)
	}
	for range foldTries {
		saved, err := s.opts.Folds.Nearest(ctx, session, limit, forms...)
		if left(ctx) {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			s.opts.Metrics.fail("read")
			s.opts.Logger.WarnContext(ctx, "saved fold not read", eventlog.LogSession, session, "error", err)
			return nil, nil
		}
		if saved == nil {
			return nil, nil
		}
		if saved.Version == projector.Version || len(forms) == 1 {
			if f, err := s.continuedFrom(ctx, session, saved, to); f != nil || err != nil {
				return f, err
			}
		}
		if limit = saved.Sequence - 1; limit == 0 {
			break
		}
	}
	return nil, nil
}

// continuedFrom returns nil, nil if the saved fold can't be used.
func (s *Store) continuedFrom(ctx context.Context, session string, saved *Saved, to uint64) (*folding, error) {
	t, err := saved.tree()
	if err != nil {
		s.opts.Metrics.fail("damaged")
		s.opts.Logger.WarnContext(ctx, "saved fold is damaged", eventlog.LogSession, session, "sequence", saved.Sequence)
		return nil, nil
	}
	f, err := s.run(ctx, session, start{
		state: t, digest: saved.Digest, line: new(line), content: len(saved.State), old: saved.Version != projector.Version,
		tip: unsaved{seq: saved.Sequence, own: saved.Own, saved: len(saved.State)},
	}, to)
	if errors.Is(err, errStale) {
		s.opts.Metrics.fail("stale")
		s.opts.Logger.WarnContext(ctx, "saved fold is stale", eventlog.LogSession, session, "sequence", saved.Sequence)
		return nil, nil
	}
	return f, err
}

// run applies what follows on a state. Of one that has records it first looks
// at the last one.
func (s *Store) run(ctx context.Context, session string, from start, to uint64) (*folding, error) {
	began, erasures := time.Now(), s.erasures.Load()
	first := from.state.Head
	after := uint64(0)
	if first > 0 {
		after = first - 1
	}
	f := &folding{state: from.state, tip: from.tip, known: from.tip.seq, old: from.old, lay: layer{line: from.line, content: from.content}}
	records := 0
	for r, err := range s.log.Read(ctx, session, after, to) {
		if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); ahead && first > 0 {
			return nil, s.aheadOrStale(ctx, session, to, err)
		}
		if err == nil && ctx.Err() != nil { // records that are here already come all the same
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if first > 0 && f.last.Sequence == 0 && (r.Sequence != first || digest(r) != from.digest) {
			return nil, errStale
		}
		records++
		if r.Sequence > first {
			f.take(ctx, s, session, r)
			continue
		}
		f.last = r
		if f.lay.laid == nil && !from.memory && !from.old {
			f.lay.lay(f.state.Clone(), from.digest, true) // it took some time to read
		}
	}
	if first > 0 && f.last.Sequence == 0 { // the state is of after the head that is read to
		return nil, errStale
	}
	s.opts.Metrics.folded(began, records)
	if first > 0 {
		s.opts.Metrics.load()
	}
	head := f.state.Head
	if head > f.known {
		f.tip = s.saveIfDue(ctx, session, f.tip, f.state, f.last)
	}
	f.known = max(f.known, head)
	f.tip.seq = f.known
	if !from.old && (first > 0 || records >= AnchorEvery || to == 0 && records >= headRecords || f.tip.bytes >= anchorBytes) && (head > first || !from.memory) {
		f.lay.lay(f.state.Clone(), digest(f.last), true)
		s.keep(ctx, session, erasures, f.lay.laid, f.tip)
		f.lay.laid = nil
	}
	return f, nil
}

// aheadOrStale distinguishes a caller's cursor that is beyond the head from a saved
// fold that is.
func (s *Store) aheadOrStale(ctx context.Context, session string, to uint64, err error) error {
	head, herr := s.log.Head(ctx, session)
	if herr == nil && to > head {
		return err
	}
	return errStale
}

// saveIfDue saves a state at its last record if that is worth its place: what it
// saves reading is larger than what it takes.
func (s *Store) saveIfDue(ctx context.Context, session string, tip unsaved, t *projector.Tree, last eventlog.Record) unsaved {
	if s.opts.Folds == nil || !tip.due(s.opts.SaveEvery) || s.log.Info().Refuses != "" {
		return tip
	}
	own, size := s.save(ctx, session, Packed, t, last)
	return unsaved{own: own, saved: size}
}

// save saves a fold and returns how many bytes that took, and how many it has.
func (s *Store) save(ctx context.Context, session string, form Form, t *projector.Tree, last eventlog.Record) (own, size int) {
	saved, err := savedAs(form, t)
	if err == nil {
		saved.Digest = digest(last)
		own, err = s.opts.Folds.Save(ctx, session, saved)
	}
	switch {
	case err == nil:
		s.opts.Metrics.save()
	case !left(ctx):
		s.opts.Metrics.fail("save")
		s.opts.Logger.WarnContext(ctx, "fold not saved", eventlog.LogSession, session, "error", err)
	}
	// The caller may have left; folds that an erasure has missed must be removed all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	if s.erasedSince(ctx, session, last) {
		s.forget(ctx, session)
	}
	return own, len(saved.State)
}

// erasedSince reports whether a session was erased since a record of it was read. It may
// have been created again.
func (s *Store) erasedSince(ctx context.Context, session string, r eventlog.Record) bool {
	ctx = eventlog.WithHead(ctx, session, 0) // the head is asked for
	for now, err := range s.log.Read(ctx, session, r.Sequence-1, r.Sequence) {
		if err != nil {
			return errors.Is(err, eventlog.ErrSessionNotFound)
		}
		return now.Sequence != r.Sequence
	}
	return true
}

// forgetTimeout bounds the erasure of a fold that was saved too late.
const forgetTimeout = 10 * time.Second

func (s *Store) forget(ctx context.Context, session string) {
	if err := s.opts.Folds.Erase(ctx, session); err != nil {
		s.opts.Logger.ErrorContext(ctx, "saved folds not erased", eventlog.LogSession, session, "error", err)
	}
}

// Erase removes every byte of a session from the log and from what was saved
// of it, for good. Errors: as eventlog.Log.Erase.
func (s *Store) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	defer func() {
		s.erasures.Add(1) // what others fold now is not kept
		s.forgetMemory(session)
	}()
	if s.opts.Folds == nil {
		return s.log.Erase(ctx, session)
	}
	if why := s.log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	// The folds first: if this breaks off, the session is still there to be
	// erased again.
	if err := s.opts.Folds.Erase(ctx, session); err != nil {
		return eventlog.Erasure{}, err
	}
	e, err := s.log.Erase(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return e, err
	}
	// And what a reader saved meanwhile.
	if again := s.opts.Folds.Erase(ctx, session); again != nil {
		e.Pending = e.Pending || err == nil // the log's part is done
		return e, again
	}
	return e, err
}

// Saved yields those of the session's saved folds that are in JSON, by rising
// sequences.
func (s *Store) Saved(ctx context.Context, session string) iter.Seq2[Saved, error] {
	return func(yield func(Saved, error) bool) {
		folds := s.opts.Folds
		if folds == nil {
			return
		}
		all, err := folds.Sequences(ctx, session, JSON)
		if err != nil {
			yield(Saved{}, err)
			return
		}
		for _, n := range all {
			saved, err := folds.Nearest(ctx, session, n, JSON)
			if err == nil && (saved == nil || saved.Sequence != n) {
				continue // removed meanwhile
			}
			if err != nil {
				yield(Saved{}, err)
				return
			}
			if !yield(*saved, nil) {
				return
			}
		}
	}
}
