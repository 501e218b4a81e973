package snapshot

import (
	"cmp"
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
	// defaultSaveEvery is the least number of records between two saved folds.
	defaultSaveEvery = 500
	// saveShare bounds the size of a saved fold: at most that many times the payloads
	// since the one before. Each fold is written whole, though most of it is not stored
	// again, and writing must not take much longer than folding those records.
	saveShare = 32
	// keyframeBytes is from how many bytes of payloads on a fold is kept in memory, however
	// few its records are.
	keyframeBytes = 1 << 20
	// headRecords is from how many records on the state at the head is kept: a producer
	// needs it for each append.
	headRecords = 16
	// foldTries is how many saved folds are tried, from the nearest one back.
	foldTries = 3
)

// Bounds of what a store keeps in memory.
const (
	MaxKeyframeBytes = 128 << 20       // of all sessions' states
	KeyframeIdle     = 5 * time.Minute // how long a session's states are kept without a request for one
	MaxTimelineBytes = 64 << 20        // of all sessions' timelines
)

// StoreOptions configure a store; zero values mean the defaults.
type StoreOptions struct {
	Folds     Folds        // nil: every state is folded from the first record
	SaveEvery int          // records between two saved folds, at least; 0: 500
	ReadOnly  bool         // saved folds are used, and no read saves another one
	Logger    *slog.Logger // for failures with saved folds; nil: no logging
	Metrics   *Metrics     // nil: nothing is measured
}

// Store folds sessions of a log.
type Store struct {
	log       eventlog.Log
	opts      StoreOptions
	timelines *cache.Cache[string, keptTimeline]
	keyframes *cache.Cache[string, keyframes]
	erasures  atomic.Uint64 // number of erasures so far
}

// New returns a store on log.
func New(log eventlog.Log, o *StoreOptions) *Store {
	s := &Store{
		log:       log,
		timelines: cache.New[string, keptTimeline](maxTimelines, MaxTimelineBytes, timelineIdle),
		keyframes: cache.New[string, keyframes](maxKeyframeSessions, MaxKeyframeBytes, KeyframeIdle),
	}
	if o != nil {
		s.opts = *o
	}
	if s.opts.SaveEvery <= 0 {
		s.opts.SaveEvery = defaultSaveEvery
	}
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
	s.opts.Metrics = cmp.Or(s.opts.Metrics, NewMetrics(nil))
	return s
}

// Head returns the state at the session's head. The caller may fold it further; it shares
// its messages and everything else that no fold changes. Errors: as eventlog.Log.Read.
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

// start is the state with which a fold begins.
type start struct {
	state  *projector.Tree // not shared
	digest string          // of the record at its head
	tip    unsaved
	memory bool // it was in memory

	lineage *lineage
	content int
}

// folding is a fold that can continue, record by record.
type folding struct {
	state *projector.Tree // not shared
	last  eventlog.Record // the record at its head
	layer layer
	tip   unsaved
	known uint64 // the records up to here are in tip
}

// take folds the next record.
func (f *folding) take(ctx context.Context, s *Store, session string, r eventlog.Record) {
	projector.Apply(f.state, r)
	f.last = r
	added := f.layer.see(r, f.state.Clone)
	if r.Sequence <= f.known {
		return
	}
	f.tip.records, f.tip.bytes = f.tip.records+1, f.tip.bytes+len(r.Payload)
	if added { // far from the last saved fold, and later reads need a nearer one
		f.tip = s.saveIfDue(ctx, session, f.tip, f.state, r)
	}
}

// fold continues the nearest state that is in memory or saved, or begins with the first
// record. It folds up to the head if to is 0.
func (s *Store) fold(ctx context.Context, session string, to uint64) (*projector.Tree, error) {
	f, err := s.folded(ctx, session, to)
	if err != nil {
		return nil, err
	}
	return f.state, nil
}

// folded is fold for a caller that continues the fold.
func (s *Store) folded(ctx context.Context, session string, to uint64) (*folding, error) {
	f, err := s.foldFrom(ctx, session, to)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		s.forgetMemory(session)
	}
	return f, err
}

func (s *Store) foldFrom(ctx context.Context, session string, to uint64) (*folding, error) {
	a, near, tip, head, err := s.nearestKept(ctx, session, to)
	if err != nil {
		return nil, err
	}
	if head > 0 { // saves a second request for the head
		ctx = eventlog.WithHead(ctx, session, head)
	}
	if a.state != nil && !near {
		near = !s.savedBehind(ctx, session, a.seq(), to)
	}
	if near {
		f, err := s.run(ctx, session, start{
			state: a.state.Clone(), digest: a.digest, tip: tip, memory: true, lineage: a.lineage, content: a.content,
		}, to)
		_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
		if !trimmed && !errors.Is(err, errStale) {
			return f, err
		}
		s.forgetMemory(session)
	}
	var unread error
	if s.opts.Folds != nil {
		f, err := s.continued(ctx, session, to, packed, JSON)
		if f != nil || err != nil && !errors.Is(err, errUnread) {
			return f, err
		}
		unread = err
	}
	f, err := s.run(ctx, session, start{state: new(projector.Tree), lineage: new(lineage)}, to)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed && s.opts.Folds != nil {
		// The earlier records are gone: only a saved fold has their state, of whatever
		// version. What follows from it is kept and saved as any other state, since this
		// version will never have a better one.
		again, jerr := s.continued(ctx, session, to, JSON)
		if again != nil || jerr != nil {
			return again, jerr
		}
		if unread != nil { // a packed fold may have the state
			return nil, unread
		}
	}
	return f, err
}

// errUnread: the saved folds can't be read now, so it is not known whether one can be used.
var errUnread = errors.New("snapshot: saved folds can't be read")

// errStale: a fold is not of this log and can't be continued.
var errStale = errors.New("snapshot: saved fold is not of this log")

// savedBehind reports whether there is a saved fold between a keyframe and the requested
// sequence.
func (s *Store) savedBehind(ctx context.Context, session string, keyframe, to uint64) bool {
	if s.opts.Folds == nil {
		return false
	}
	all, err := s.opts.Folds.Sequences(ctx, session, packed, JSON)
	return err == nil && slices.ContainsFunc(all, func(n uint64) bool { return n > keyframe && (to == 0 || n <= to) })
}

// left reports whether the caller has left, which is no failure of the saved folds.
func left(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// continued returns nil, nil if no saved fold can be used. It uses folds of another
// version only if JSON is the only form. Errors: errUnread, and the log's.
func (s *Store) continued(ctx context.Context, session string, to uint64, forms ...Form) (*folding, error) {
	limit := to
	limit = cmp.Or(limit, ^uint64(0))
	for range foldTries {
		saved, err := s.opts.Folds.Nearest(ctx, session, limit, forms...)
		if left(ctx) {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			s.opts.Metrics.fail("read")
			s.opts.Logger.WarnContext(ctx, "saved fold not read", eventlog.LogSession, session, "error", err)
			return nil, fmt.Errorf("%w: %w", errUnread, err)
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
		state: t, digest: saved.Digest, lineage: new(lineage), content: len(saved.State),
		tip: unsaved{seq: saved.Sequence, own: saved.Own, saved: len(saved.State)},
	}, to)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed { // its record is gone
		return nil, nil
	}
	if errors.Is(err, errStale) {
		s.opts.Metrics.fail("stale")
		s.opts.Logger.WarnContext(ctx, "saved fold is stale", eventlog.LogSession, session, "sequence", saved.Sequence)
		return nil, nil
	}
	return f, err
}

// run applies the records after a state. If the state has records, it first checks that
// the log still has the last one.
func (s *Store) run(ctx context.Context, session string, from start, to uint64) (*folding, error) {
	began, erasures := time.Now(), s.erasures.Load()
	first := from.state.Head
	after := uint64(0)
	if first > 0 {
		after = first - 1
	}
	f := &folding{state: from.state, tip: from.tip, known: from.tip.seq, layer: layer{lineage: from.lineage, content: from.content}}
	records := 0
	for r, err := range s.log.Read(ctx, session, after, to) {
		if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); ahead && first > 0 {
			return nil, s.aheadOrStale(ctx, session, to, err)
		}
		if err == nil && ctx.Err() != nil { // buffered records are yielded even so
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
		if f.layer.added == nil && !from.memory {
			f.layer.add(f.state.Clone(), from.digest, true) // keep it: reading it took some time
		}
	}
	if first > 0 && f.last.Sequence == 0 { // the state is after the head up to which it reads
		return nil, errStale
	}
	s.opts.Metrics.folded(began, records)
	if first > 0 {
		s.opts.Metrics.loaded.Inc()
	}
	head := f.state.Head
	if head > f.known {
		f.tip = s.saveIfDue(ctx, session, f.tip, f.state, f.last)
	}
	f.known = max(f.known, head)
	f.tip.seq = f.known
	if (first > 0 || records >= keyframeEvery || to == 0 && records >= headRecords || f.tip.bytes >= keyframeBytes) && (head > first || !from.memory) {
		f.layer.add(f.state.Clone(), digest(f.last), true)
		s.keep(ctx, session, erasures, f.layer.added, f.tip, nil)
		f.layer.added = nil
	}
	return f, nil
}

// aheadOrStale distinguishes a caller's cursor beyond the head from a saved fold beyond
// it.
func (s *Store) aheadOrStale(ctx context.Context, session string, to uint64, err error) error {
	head, herr := s.log.Head(ctx, session)
	if herr == nil && to > head {
		return err
	}
	return errStale
}

// saveIfDue saves a state at its last record if that is worth its space: the reading that
// it saves is larger than the fold.
func (s *Store) saveIfDue(ctx context.Context, session string, tip unsaved, t *projector.Tree, last eventlog.Record) unsaved {
	if s.opts.Folds == nil || s.opts.ReadOnly || !tip.due(s.opts.SaveEvery) || s.log.Info().Refuses != "" {
		return tip
	}
	own, size := s.save(ctx, session, packed, t, last)
	return unsaved{own: own, saved: size}
}

// save saves a fold. It returns how many bytes that took, and the fold's size.
func (s *Store) save(ctx context.Context, session string, form Form, t *projector.Tree, last eventlog.Record) (own, size int) {
	saved, err := savedAs(form, t)
	if err == nil {
		saved.Digest = digest(last)
		own, err = s.opts.Folds.Save(ctx, session, saved)
	}
	switch {
	case err == nil:
		s.opts.Metrics.saved.Inc()
	case !left(ctx):
		s.opts.Metrics.fail("save")
		s.opts.Logger.WarnContext(ctx, "fold not saved", eventlog.LogSession, session, "error", err)
	}
	// The caller may have left; a fold that was saved after an erasure must be removed
	// even so.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	if there, err := s.Has(ctx, session, last.Sequence); !there && (err == nil || errors.Is(err, eventlog.ErrSessionNotFound)) {
		s.forget(ctx, session)
	}
	return own, len(saved.State)
}

// Has reports whether the session has the record at a sequence. If not, and without an error,
// the session was erased, and may have been created again. Errors: those of the log's Read.
func (s *Store) Has(ctx context.Context, session string, sequence uint64) (bool, error) {
	ctx = eventlog.WithHead(ctx, session, 0)
	for r, err := range s.log.Read(ctx, session, sequence-1, sequence) {
		return err == nil && r.Sequence == sequence, err
	}
	return false, nil
}

// forgetTimeout bounds the erasure of a fold that was saved too late.
const forgetTimeout = 10 * time.Second

func (s *Store) forget(ctx context.Context, session string) {
	if err := s.opts.Folds.Erase(ctx, session); err != nil {
		s.opts.Logger.ErrorContext(ctx, "saved folds not erased", eventlog.LogSession, session, "error", err)
	}
}

// Erase removes every byte of a session from the log and from the saved folds, for good. Within
// [eventlog.WithHead] it leaves a later session of the id alone, and its folds. Errors: as
// eventlog.Log.Erase.
func (s *Store) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	defer func() {
		s.erasures.Add(1) // states that are being folded now are not kept
		s.forgetMemory(session)
	}()
	if s.opts.Folds == nil {
		return s.log.Erase(ctx, session)
	}
	if why := s.log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	only, known := eventlog.HeadFrom(ctx, session)
	ours := !known
	if known { // unless the record is there, the folds may be a later session's
		ours, _ = s.Has(ctx, session, only)
	}
	// The folds first: if this is interrupted, the session still exists and can be erased
	// again.
	if ours {
		if err := s.opts.Folds.Erase(ctx, session); err != nil {
			return eventlog.Erasure{}, err
		}
	}
	e, err := s.log.Erase(ctx, session)
	if err != nil && (known || !errors.Is(err, eventlog.ErrSessionNotFound)) {
		return e, err
	}
	// Again, since a reader may have saved a fold meanwhile.
	if again := s.opts.Folds.Erase(ctx, session); again != nil {
		e.Pending = e.Pending || err == nil // the log's part is done
		return e, again
	}
	return e, err
}

// Folded returns the state after all records with sequence <= n as Saved yields one, without
// saving it. If n is beyond the head, it is the state at the head. Errors: as
// eventlog.Log.Read.
func (s *Store) Folded(ctx context.Context, session string, n uint64) (Saved, error) {
	f, err := s.folded(ctx, session, n)
	if ahead, is := errors.AsType[*eventlog.CursorAheadError](err); is {
		f, err = s.folded(ctx, session, ahead.Head)
	}
	if err != nil {
		return Saved{}, err
	}
	saved, err := savedAs(JSON, f.state)
	saved.Digest = digest(f.last)
	return saved, err
}

// Saved yields the session's saved folds in JSON, by rising sequence.
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
