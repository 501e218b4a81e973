package maintenance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// purgeStep is how many messages one purge removes: appends wait meanwhile.
const purgeStep = 50_000

// Purge implements [jetstream.Log.Purge].
func (l *Maintenance) Purge(ctx context.Context, o eventlog.PurgeOptions) ([]eventlog.Purged, error) {
	o.SealedFor = cmp.Or(o.SealedFor, eventlog.MinSealed)
	ctx, err := l.Frees(ctx)
	if err != nil {
		return nil, err
	}
	return l.purgeAll(ctx, o.OlderThan, func() time.Time { return time.Now().Add(-o.SealedFor) })
}

// purgeAll is Purge of records that were sealed before a moment.
func (l *Maintenance) purgeAll(ctx context.Context, olderThan time.Duration, sealed func() time.Time) (all []eventlog.Purged, err error) {
	for p := range l.Partitions() {
		done, err := l.purge(ctx, p, olderThan, sealed)
		if err != nil {
			return all, fmt.Errorf("jetstream: purge: partition %d: %w", p, err)
		}
		all = append(all, done)
	}
	return all, nil
}

func (l *Maintenance) purge(ctx context.Context, p int, olderThan time.Duration, sealed func() time.Time) (eventlog.Purged, error) {
	s, err := l.JS.Stream(ctx, layout.LogStream(p))
	if err != nil {
		return eventlog.Purged{}, err
	}
	before := s.CachedInfo().State
	done := eventlog.Purged{Partition: p, Below: before.FirstSeq}
	below, err := l.firstSince(ctx, p, time.Now().Add(-olderThan), before.LastSeq)
	if err != nil {
		return done, err
	}
	all, err := l.SubjectsOf(ctx, layout.LogStream(p), layout.LogSubjects+strconv.Itoa(p)+".*")
	if err != nil {
		return done, err
	}
	sessions := slices.Sorted(maps.Keys(all))
	for _, session := range sessions {
		began := time.Now()
		if below, err = l.purgeable(ctx, session, below, sealed); err != nil {
			return done, fmt.Errorf("session %q: %w", session, err)
		}
		if below <= before.FirstSeq {
			return done, nil
		}
		l.Yield(ctx, began)
	}
	for _, session := range sessions {
		began := time.Now()
		if _, err := l.compare(ctx, session, below); err != nil {
			return done, fmt.Errorf("session %q: %w", session, err)
		}
		l.Yield(ctx, began)
	}
	l.Purged.Store(true)
	for at := before.FirstSeq; at < below; {
		began := time.Now()
		err := l.Step(ctx, "purge", func(ctx context.Context) (err error) {
			if below, err = l.leavesOne(ctx, s, p, below); err != nil || below <= at {
				return err
			}
			at = min(at+purgeStep, below)
			n, err := l.purgeBelow(ctx, p, at)
			done.Records += n
			return err
		})
		if err == nil {
			err = l.AwaitRemoved(ctx, layout.LogStream(p))
		}
		if err != nil {
			return done, err
		}
		l.Yield(ctx, began)
	}
	if l.Opts.Server != nil {
		if err := l.Opts.Server.ScrubPurged(ctx, layout.LogStream(p), layout.LogSubjects+strconv.Itoa(p)+".>"); err != nil {
			return done, err
		}
		if err := l.Opts.Server.Rescrub(ctx); err != nil {
			return done, err
		}
	}
	after, err := s.Info(ctx)
	if err != nil {
		return done, err
	}
	l.Committers[p].Begins.Store(after.State.FirstSeq)
	done.Below = after.State.FirstSeq
	return done, nil
}

// purgeBelow removes the messages of a partition's log below a sequence, and returns how
// many there were.
func (l *Maintenance) purgeBelow(ctx context.Context, p int, below uint64) (uint64, error) {
	req, _ := json.Marshal(map[string]uint64{"seq": below})
	m, err := l.Request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + layout.LogStream(p), Data: req}, link.AnswerTimeout)
	if err != nil {
		return 0, err
	}
	var answer struct {
		link.Refusal
		Purged uint64 `json:"purged"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, err
	}
	return answer.Purged, answer.Taken()
}

// leavesOne returns below or less, so that a purge of a partition's log leaves a message
// that no one removes meanwhile. If there is none, it returns 1, which purges nothing. If
// a purge leaves no message in the last block, nats-server 2.15.2 continues to count from
// the block's old first sequence, removes the same messages from its index again with the
// next purge, and then no longer finds later ones of their subjects. If a purge removes
// all messages, the server begins a new block, which is not on the disk when the others
// are removed: see Server.GroupSync.
func (l *Maintenance) leavesOne(ctx context.Context, s natsjs.Stream, p int, below uint64) (uint64, error) {
	if !l.GroupSync() {
		info, err := s.Info(ctx)
		if err != nil || below > info.State.LastSeq {
			return below, err
		}
	}
	last, err := l.LeaderGet(ctx, layout.LogStream(p), map[string]any{"last_by_subj": layout.LogSubjects + strconv.Itoa(p) + ".>"})
	switch {
	case errors.Is(err, link.ErrNoMessage):
		return 1, nil
	case err != nil:
		return 1, err
	case wire.IsErased(last.Header): // it is removed as soon as the erasure has ended
		return 1, nil
	}
	return min(below, last.Sequence), nil
}

// firstSince returns the first sequence of a partition's log stored at or after a time,
// else the one after last.
func (l *Maintenance) firstSince(ctx context.Context, p int, t time.Time, last uint64) (uint64, error) {
	req, _ := json.Marshal(map[string]any{
		"next_by_subj": layout.LogSubjects + strconv.Itoa(p) + ".*", "start_time": t.UTC(), "batch": 1,
	})
	m, err := l.Request(ctx, &nats.Msg{Subject: "$JS.API.DIRECT.GET." + layout.LogStream(p), Data: req}, link.AnswerTimeout)
	if err != nil {
		return 0, err
	}
	if wire.First(m.Header, wire.HeaderStatus) == "404" {
		return last + 1, nil
	}
	return wire.SequenceOf(m)
}

// purgeable returns below or less: the first sequence of the session that is in no
// segment stored before the time that sealed returns.
func (l *Maintenance) purgeable(ctx context.Context, session string, below uint64, sealed func() time.Time) (uint64, error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return 0, err
	}
	begins, err := l.FirstFrom(ctx, stream, subject, 1)
	if err != nil || begins == 0 || begins >= below {
		return below, err
	}
	err = l.Seal(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		// An interrupted erasure. A purge would leave its bytes where nothing overwrites
		// them any more.
		if _, err = l.findErasure(ctx, session); err == nil {
			_, err = l.finishErasure(ctx, session, true)
		}
		if err == nil || errors.Is(err, eventlog.ErrSessionNotFound) { // others have ended it
			return below, nil // records of a new session are after below
		}
	}
	if err != nil {
		return 0, err
	}
	held, err := l.sealedBefore(ctx, session, begins-1, sealed())
	if err != nil {
		return 0, err
	}
	for next, err := range l.ReadStored(ctx, session, held, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return begins, nil
		}
		return min(below, next.Sequence), err
	}
	return below, nil
}

// SealedBefore implements eventlog.Archive.
func (l *Maintenance) SealedBefore(ctx context.Context, session string, t time.Time) (uint64, error) {
	return l.sealedBefore(ctx, session, 0, t)
}

// sealedBefore is SealedBefore for the segments with records after from; if none is that
// old, it returns from. It assumes that the servers' clock does not go back, as the
// server does.
func (l *Maintenance) sealedBefore(ctx context.Context, session string, from uint64, t time.Time) (uint64, error) {
	refs, _, err := l.SegmentsBehind(ctx, session, from, l.LastSegment)
	if err != nil {
		return from, err
	}
	stream := layout.SegmentStream(l.PartitionOf(session))
	young := sort.Search(len(refs), func(i int) bool {
		m, gerr := l.GetAt(ctx, stream, refs[i].At)
		if gerr != nil && !errors.Is(gerr, link.ErrNoMessage) { // a segment that retention has removed was old enough
			err = gerr
		}
		return m.At.After(t)
	})
	if err != nil || young == 0 {
		return from, err
	}
	return refs[young-1].Last, nil
}
