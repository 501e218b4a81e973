package streams

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// metadataBegins is the metadata key of a log stream that was created for a growth: the
// stream's first sequence, before which it never had a message.
const metadataBegins = "helix.begins"

// BeginsWith returns the first sequence of a stream that was created for a growth, else
// 0.
func BeginsWith(metadata map[string]string) uint64 {
	n, _ := strconv.ParseUint(metadata[metadataBegins], 10, 64)
	return n
}

// Grow increases the number of partitions to n while the log is in use; see growth for
// how. Existing sessions stay in their partitions. On streams with replicas it takes 45
// s, on a server that stores alone 20 s; appends that create sessions wait for the last
// seconds. On an embedded server there are no such waits. If it fails, the log keeps the
// old number.
//
// Errors: ErrUnavailable; an error that says why the log can't grow.
func (l *Set) Grow(ctx context.Context, n int) error {
	if n > layout.MaxPartitions {
		return fmt.Errorf("jetstream: at most %d partitions", layout.MaxPartitions)
	}
	l.Lock(ctx, &l.grow)
	defer l.grow.Unlock()
	for l.Partitions() < n {
		if err := l.growOnce(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// growOnce grows the log, or waits for another process that does.
func (l *Set) growOnce(ctx context.Context, n int) error {
	was := l.places.Load()
	i := len(was.Settled)
	numbers := was.Grown(n, nil).Numbers
	all := ConfigsOf(l.Opts, numbers, 0)
	if err := l.makeFor(ctx, all[len(all)-1]); err != nil { // the stream of the tables
		return err
	}
	g, seq, err := l.growthOf(ctx, i)
	if err != nil {
		return err
	}
	switch {
	case g.Phase == grown:
		return l.takeOver(ctx, g.To)
	case (g.Phase == announced || g.Phase == closing) && !l.sole():
		return l.Sleep(ctx, growthSoon) // watchGrowth applies the growth, or cancels it
	}
	g = growth{Phase: announced, To: n, By: rand.Text()}
	if seq, err = l.setGrowth(ctx, i, seq, g); err != nil {
		return err
	}
	err = l.prepare(ctx, was, numbers, &g, &seq)
	if err == nil {
		g.Phase = grown
		_, err = l.setGrowth(ctx, i, seq, g)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), link.AnswerTimeout)
		defer cancel()
		if !l.cancelGrowth(ctx, i, seq, g) && l.sole() { // otherwise watchGrowth does it
			l.Spawn(func() { l.cancelLater(i, g.By) })
		}
		return err
	}
	if err := l.takeOver(ctx, n); err != nil {
		return err
	}
	if l.sole() {
		l.permit.extend(unlimited(), 0)
	}
	return l.noteNumbers(ctx)
}

// cancelGrowth cancels a growth whose last message is the one at seq, and reports whether
// it is cancelled.
func (l *Set) cancelGrowth(ctx context.Context, i int, seq uint64, g growth) bool {
	g.Phase = cancelled
	if _, err := l.setGrowth(ctx, i, seq, g); err != nil {
		return false
	}
	if l.sole() {
		l.permit.extend(unlimited(), 0)
	}
	return true
}

// cancelLater cancels the growth of this process that it could not cancel at once, unless
// the log has grown after all: until one of both is known, the sessions that the new
// number puts elsewhere are not created.
func (l *Set) cancelLater(i int, by string) {
	for ended := false; !ended && l.Sleep(context.Background(), growthLook) == nil; {
		ended = l.endGrowth(i, by)
	}
}

// endGrowth tries once, and reports whether it has ended.
func (l *Set) endGrowth(i int, by string) (ended bool) {
	l.grow.Lock()
	defer l.grow.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), link.AnswerTimeout)
	defer cancel()
	g, seq, err := l.growthOf(ctx, i)
	switch {
	case err != nil:
		return false
	case g.By != by: // this process has begun another one
		return true
	case g.Phase != grown:
		return l.cancelGrowth(ctx, i, seq, g)
	}
	if l.takeOver(ctx, g.To) != nil {
		return false
	}
	l.permit.extend(unlimited(), 0)
	return true
}

// prepare does the work between the announcement of a growth and its end: it creates the
// new streams, closes the old number and stores the table of the sessions that stay. It
// updates g and seq as the growth advances.
func (l *Set) prepare(ctx context.Context, was *layout.Places, numbers []int, g *growth, seq *uint64) error {
	began := time.Now()
	i, n := len(was.Settled), g.To
	parts, err := l.partsOf(ctx, i)
	if err != nil {
		return err
	}
	_, begins, err := l.beforeGrowth(ctx, was.Partitions())
	if err != nil {
		return err
	}
	begins += growthRoom
	var made []string
	for p := was.Partitions(); p < n; p++ {
		for _, c := range ConfigsOf(l.Opts, numbers, p) {
			if c.Name == layout.LogStream(p) {
				c.FirstSeq = begins
				c.Metadata = maps.Clone(c.Metadata)
				c.Metadata[metadataBegins] = strconv.FormatUint(begins, 10)
			}
			if err := l.makeFor(ctx, c); err != nil {
				return err
			}
			made = append(made, c.Name)
		}
	}
	if err := l.syncGrowth(ctx, append(made, layout.PlacesStream)...); err != nil {
		return err
	}
	if !l.sole() {
		if err := l.Sleep(ctx, l.announceTime()-time.Since(began)); err != nil {
			return err
		}
	}
	g.Phase = closing
	at, err := l.setGrowth(ctx, i, *seq, *g)
	if err != nil {
		return err
	}
	*seq = at
	if l.sole() {
		l.permit.extend(unlimited(), n)
	} else if err := l.Sleep(ctx, shortLease+leaseMargin); err != nil {
		return err
	}
	sessions, end, err := l.beforeGrowth(ctx, was.Partitions())
	if err != nil {
		return err
	}
	if end > begins {
		return fmt.Errorf("jetstream: %w: the log got %d sequences while it grew: try again", eventlog.ErrUnavailable, growthRoom)
	}
	if err := l.storeSettled(ctx, i, was.Staying(sessions, n), parts); err != nil {
		return err
	}
	return l.syncGrowth(ctx, layout.PlacesStream)
}

// growthRoom is how many sequences the log may assign while it grows. The sequences of
// the new streams begin after them, so that a session that was erased and is created
// again in another partition has later sequences than before.
const growthRoom = 1 << 24

// announceTime is how long a growth stays announced.
func (l *Set) announceTime() time.Duration {
	switch {
	case l.Opts.Announced > 0:
		return l.Opts.Announced
	case l.Opts.Replicas > 1:
		return createLease + leaseMargin + deposedLeader
	}
	return createLease + leaseMargin
}

// noteNumbers stores in the first stream which numbers of partitions the log has had, and
// removes the messages of processes that have seen its growth.
func (l *Set) noteNumbers(ctx context.Context) error {
	first := l.StreamsOf(0)[0]
	s, err := l.FindStream(ctx, first.Name)
	if err != nil {
		return err
	}
	if err := l.setMetadata(ctx, s, first); err != nil {
		return err
	}
	if err := l.syncGrowth(ctx, first.Name); err != nil {
		return err
	}
	places, err := l.FindStream(ctx, layout.PlacesStream)
	if err != nil {
		return err
	}
	return l.Step(ctx, "places", func(ctx context.Context) error {
		return places.Purge(ctx, natsjs.WithPurgeSubject(layout.GrowthSeenSubject(len(l.places.Load().Settled)-1)))
	})
}

// beforeGrowth returns all sessions of which the log has anything, and the first sequence
// after all that it has assigned. Errors: ErrUnavailable if a server that answered may
// not lead: it may lack sessions, which the new number would then put elsewhere.
func (l *Set) beforeGrowth(ctx context.Context, partitions int) (sessions map[string]bool, begins uint64, err error) {
	sessions, begins = map[string]bool{}, 1
	for p := range partitions {
		for _, stream := range []string{layout.LogStream(p), layout.SegmentStream(p), layout.BlobStream} {
			if stream == layout.BlobStream && p > 0 { // shared by all partitions
				continue
			}
			if err := l.Certain(ctx, stream); err != nil {
				return nil, 0, err
			}
			if stream == layout.LogStream(p) {
				last, err := l.LastOf(ctx, stream)
				if err != nil {
					return nil, 0, err
				}
				begins = max(begins, last+1)
			}
			some, err := l.SubjectsOf(ctx, stream, ">")
			if err == nil {
				err = l.Certain(ctx, stream)
			}
			if err != nil {
				return nil, 0, err
			}
			for session := range some {
				sessions[session] = true
			}
		}
	}
	return sessions, begins, nil
}

// makeFor creates a stream for a growth. An existing one was created for a growth that
// was interrupted: it is empty, except for the table.
func (l *Set) makeFor(ctx context.Context, want natsjs.StreamConfig) error {
	s, err := l.FindStream(ctx, want.Name)
	if errors.Is(err, natsjs.ErrStreamNotFound) {
		_, err = l.createStream(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	if err := checkRestored(info.Config, want); err != nil {
		return err
	}
	if info.Config.Metadata[metadataPartitions] == "" || want.Name != layout.PlacesStream && info.State.Msgs > 0 {
		return fmt.Errorf("jetstream: the log can't grow: there is a stream %s that is not of the log: remove or rename it", want.Name)
	}
	if err := CheckSettings(info.Config, want); err != nil {
		return err
	}
	if want.FirstSeq > info.State.LastSeq+1 {
		err = l.Step(ctx, "purge", func(ctx context.Context) error { return s.Purge(ctx, natsjs.WithPurgeSequence(want.FirstSeq)) })
		if err != nil {
			return fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
		}
	}
	return l.setMetadata(ctx, s, want)
}

// setMetadata adds the metadata of want to a stream's.
func (l *Set) setMetadata(ctx context.Context, s natsjs.Stream, want natsjs.StreamConfig) error {
	config := s.CachedInfo().Config
	config.Metadata = maps.Clone(config.Metadata)
	for _, key := range []string{metadataPartitions, metadataBegins} {
		if value := want.Metadata[key]; value != "" {
			config.Metadata[key] = value
		}
	}
	err := link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		return l.Step(ctx, "grow", func(ctx context.Context) error {
			_, err := l.JS.UpdateStream(ctx, config)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", want.Name, err)
	}
	return nil
}

// syncGrowth returns when streams are on the disk with their settings, if this process's
// server has them. That includes a server that syncs by itself: it does not sync
// settings.
func (l *Set) syncGrowth(ctx context.Context, streams ...string) error {
	if l.Opts.Server == nil {
		return nil
	}
	if err := l.Opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	if err := l.Opts.Server.SyncStreams(ctx, streams...); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	return nil
}
