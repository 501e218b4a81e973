package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// feedIdleLeast and feedIdleMost bound how long a feed waits without a message until
	// it checks whether the log's last records are gone; the time doubles.
	feedIdleLeast = 100 * time.Millisecond
	feedIdleMost  = time.Second
	// feedRetry is the pause before a lost consumer is replaced, doubled up to
	// feedRetryMost.
	feedRetry     = 50 * time.Millisecond
	feedRetryMost = 2 * time.Second
)

// Feeds yield whole partitions.
type Feeds struct{ *store.Store }

func New(records *store.Store) *Feeds { return &Feeds{records} }

// Identity implements [jetstream.Log.Identity].
func (l *Feeds) Identity(ctx context.Context) (string, error) {
	var b strings.Builder
	for p := range l.Partitions() {
		s, err := l.FindStream(ctx, layout.LogStream(p))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s@%d ", layout.LogStream(p), s.CachedInfo().Created.UnixNano())
	}
	return strings.TrimSpace(b.String()), nil
}

// Spans implements eventlog.ChangeFeed.
func (l *Feeds) Spans(ctx context.Context) ([]eventlog.Span, error) {
	if l.IsClosed() {
		return nil, eventlog.ErrClosed
	}
	all := make([]eventlog.Span, l.Partitions())
	failed := make([]error, len(all))
	var asked sync.WaitGroup
	for p := range all {
		asked.Go(func() { all[p], failed[p] = l.ends(ctx, p) })
	}
	asked.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return all, nil
}

// ends asks a partition's leader for its first and last sequence.
func (l *Feeds) ends(ctx context.Context, p int) (eventlog.Span, error) {
	info, err := l.StreamInfo(ctx, layout.LogStream(p), "")
	if err != nil {
		return eventlog.Span{}, fmt.Errorf("jetstream: ends: %w", err)
	}
	first := info.State.FirstSeq
	l.NoteFirst(p, first)
	return eventlog.Span{First: max(first, 1), Last: info.State.LastSeq, Begins: streams.BeginsWith(info.Config.Metadata)}, nil
}

// errFeedLost: the consumer does not answer any more.
var errFeedLost = errors.New("jetstream: the feed's consumer is lost")

// Feed implements [jetstream.Log.Feed].
func (l *Feeds) Feed(ctx context.Context, partition int, from uint64) iter.Seq2[eventlog.Change, error] {
	return func(yield func(eventlog.Change, error) bool) {
		f := &feeder{log: l, partition: partition, at: from, patience: link.LeaderPatience, yield: yield}
		f.feed(ctx)
	}
}

// feeder yields one partition.
type feeder struct {
	log       *Feeds
	partition int
	at        uint64        // the last position that was yielded
	patience  time.Duration // how long it may make no progress
	well      time.Time     // when it last made progress, or had nothing to yield
	yield     func(eventlog.Change, error) bool
}

// feed yields until there is a reason to end.
func (f *feeder) feed(ctx context.Context) {
	f.well = time.Now()
	for wait := feedRetry; ; wait = min(2*wait, feedRetryMost) {
		before := f.at
		err := f.run(ctx)
		_, ahead := errors.AsType[*eventlog.CursorAheadError](err)
		switch {
		case errors.Is(err, link.ErrStopped):
			return
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case f.log.IsClosed():
			err = eventlog.ErrClosed
		case !ahead && time.Since(f.well) < f.patience:
			if f.at > before {
				wait = feedRetry
			}
			_ = f.log.Sleep(ctx, wait) // run returns the error
			continue
		}
		f.yield(eventlog.Change{}, err)
		return
	}
}

// run yields until an error.
func (f *feeder) run(ctx context.Context) error {
	ends, err := f.log.ends(ctx, f.partition)
	if err != nil {
		return err
	}
	if f.at > ends.Last {
		return f.ahead(ctx, ends.Last)
	}
	c, err := f.log.openFeed(ctx, f.partition, f.at+1)
	if err != nil {
		return err
	}
	defer c.close()
	idle := feedIdleLeast
	for {
		m, err := c.next(ctx, idle)
		if err != nil {
			return err
		}
		if m == nil {
			idle = min(2*idle, feedIdleMost)
			if err := f.mark(ctx, c); err != nil {
				return err
			}
			continue
		}
		idle = feedIdleLeast
		more, err := f.hand(ctx, m)
		if err != nil {
			return err
		}
		if !more {
			return link.ErrStopped
		}
	}
}

// hand yields one message, unless mark has passed it: then the message is gone.
func (f *feeder) hand(ctx context.Context, m *feedMessage) (more bool, err error) {
	if m.Sequence <= f.at {
		return true, nil
	}
	fed := eventlog.Change{Previous: m.Previous, Linked: m.Linked, Record: m.Record}
	fed.Session, _ = layout.SessionID(m.subject[strings.LastIndexByte(m.subject, '.')+1:])
	if stray, err := f.log.Stray(ctx, fed.Session, f.partition); err != nil {
		return false, err
	} else if stray {
		f.at = m.Sequence
		return f.tell(eventlog.Change{Record: eventlog.Record{Sequence: f.at}}), nil
	}
	if m.Blob != "" {
		fed.Payload, fed.Err = f.log.LoadBlob(ctx, fed.Session, m.Blob)
		if ctx.Err() != nil {
			return true, nil // run notices the end; this message was not yielded
		}
	}
	f.at = m.Sequence
	return f.tell(fed), nil
}

// tell yields an item, however long the reader takes.
func (f *feeder) tell(fed eventlog.Change) bool {
	more := f.yield(fed, nil)
	f.well = time.Now()
	return more
}

// mark yields the log's last position if the record there is gone: no message would
// contain it.
func (f *feeder) mark(ctx context.Context, c *feedConsumer) error {
	ends, err := f.log.ends(ctx, f.partition)
	if err != nil {
		return err
	}
	if ends.Last < f.at {
		return f.ahead(ctx, ends.Last)
	}
	if ends.Last == f.at {
		f.well = time.Now()
		return nil
	}
	stream, every := layout.LogStream(f.partition), fmt.Sprintf("%s%d.*", layout.LogSubjects, f.partition)
	last, err := f.log.LastMessage(ctx, stream, every)
	if err != nil && !errors.Is(err, link.ErrNoMessage) {
		return err
	}
	if last.Sequence > f.at {
		if c.silent() {
			return errFeedLost
		}
		return nil // its message is under way
	}
	if !f.log.Leads(ctx, stream) {
		return nil // the server that answered may lack the last records
	}
	f.at = ends.Last
	if !f.tell(eventlog.Change{Record: eventlog.Record{Sequence: f.at}}) {
		return link.ErrStopped
	}
	return nil
}

// ahead returns a *CursorAheadError if the partition certainly ends before the feed's
// position. One answer is not enough: a leader that was cut off does not know for a moment
// that another one has taken its place, and lacks what that one has stored.
func (f *feeder) ahead(ctx context.Context, last uint64) error {
	if f.log.Opts.Replicas > 1 {
		if err := f.log.Sleep(ctx, link.NewsTime); err != nil {
			return err
		}
		ends, err := f.log.ends(ctx, f.partition)
		if err != nil {
			return err
		}
		if last = ends.Last; f.at <= last || !f.log.Leads(ctx, layout.LogStream(f.partition)) {
			return fmt.Errorf("jetstream: feed: %w: the server that answered was not the leader", eventlog.ErrUnavailable)
		}
	}
	return &eventlog.CursorAheadError{Cursor: f.at, Head: last}
}

// openFeed creates a consumer that begins at a position.
func (l *Feeds) openFeed(ctx context.Context, partition int, from uint64) (*feedConsumer, error) {
	var info *natsjs.ConsumerInfo
	err := link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		c, err := l.JS.CreateConsumer(ctx, layout.LogStream(partition), natsjs.ConsumerConfig{
			Description:       "helixd: feed of a node's read models",
			DeliverPolicy:     natsjs.DeliverByStartSequencePolicy,
			OptStartSeq:       from,
			AckPolicy:         natsjs.AckNonePolicy,
			InactiveThreshold: streams.FeedForgotten,
			MemoryStorage:     true,
			Replicas:          1,
		})
		if err == nil {
			info = c.CachedInfo()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: feed: %w", err)
	}
	return newFeedConsumer(l.Store, info)
}
