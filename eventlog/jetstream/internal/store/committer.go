package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// batchFrom is GroupFrom for appends that are atomic batches themselves: a single
	// server stages a batch in a store of its own, which costs the same however many
	// records it has, and milliseconds if it is on the disk.
	batchFrom = 2
	// groupBytes bounds the bytes of a shared batch.
	groupBytes = 16 << 20
)

// committer stores the appends of one partition.
//
// If an append costs a disk sync or a round of replication, the appends of many sessions
// share it: from GroupFrom waiting sessions on, the waiting appends go into one atomic
// batch while the previous batch is in progress. A member of a batch is one append call,
// with its own comparison on its first message. If a batch is refused, only the members
// whose comparison failed fail. If a publish costs neither, appends of one record are
// published separately, and those of more records share a batch from batchFrom on.
type committer struct {
	log *Store
	// partition is where the appends are. A growth may have placed their sessions elsewhere
	// since they were sent.
	partition int
	grouped   bool // else appends of one record are published separately
	room      int  // messages of a shared batch
	// Begins is the partition's first sequence, or less. Earlier records were purged, so
	// that a comparison with one of them can't succeed.
	Begins atomic.Uint64

	mu       sync.Mutex
	plain    int              // separate publishes in progress
	batching bool             // a goroutine is working on queue
	queue    []*PendingAppend // bounded by the waiting callers
}

// PendingAppend is one call of Append.
type PendingAppend struct {
	Session  string
	Expected uint64
	Messages []*nats.Msg
	Records  []wire.Stored // the records in the messages
	blobs    []storedBlob  // blobs of the append
	since    uint64        // the log's last sequence before the blobs were stored
	bytes    int

	ctx  context.Context
	done chan struct{} // closed when last and err are set
	last uint64
	err  error

	tries int // tries that found another append in flight
}

// from returns how many waiting appends share a batch.
func (c *committer) from() int {
	if c.grouped {
		return link.GroupFrom
	}
	return batchFrom
}

// compare stores a if the session's last record in the log is the expected one. If the
// server can't compare, because it is replicating another append to the session, a is
// sent again, unless it turns out that the other append is stored.
func (c *committer) compare(ctx context.Context, a *PendingAppend) (uint64, error) {
	for pause := link.MinRefusedPause; ; {
		last, err := c.Append(ctx, a)
		if !errors.Is(err, link.ErrInFlight) {
			return last, err
		}
		if head, err := c.log.Head(ctx, a.Session); err == nil && head > a.Expected {
			return 0, &eventlog.ConflictError{Head: head}
		}
		if err := c.log.Rest(ctx, pause); err != nil {
			return 0, err
		}
		if a.tries++; a.tries > quickTries {
			pause = min(2*pause, link.MaxRefusedPause)
		}
	}
}

// quickTries is how often an append is sent again within 1 to 2 ms. An append that is in
// flight for longer waits for a leader.
const quickTries = 50

// Append stores a, separately or in a batch. If ctx ends first, the error is its cause,
// with ErrOutcomeUnknown unless a was never sent.
func (c *committer) Append(ctx context.Context, a *PendingAppend) (uint64, error) {
	if !c.grouped && len(a.Messages) == 1 {
		return c.log.Publish(ctx, a.Messages)
	}
	c.mu.Lock()
	if !c.batching && c.plain < c.from() {
		c.plain++
		c.mu.Unlock()
		last, err := c.log.Publish(ctx, a.Messages)
		c.mu.Lock()
		c.plain--
		c.mu.Unlock()
		return last, err
	}
	a.ctx, a.done = ctx, make(chan struct{})
	c.queue = append(c.queue, a)
	if !c.batching {
		if !c.log.Spawn(c.work) {
			c.queue = nil
			c.mu.Unlock()
			return 0, eventlog.ErrClosed
		}
		c.batching = true
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.last, a.err
	case <-ctx.Done():
		return c.leave(a)
	}
}

// leave ends the wait for a, whose context has ended. A member of a batch that was sent
// can't be withdrawn.
func (c *committer) leave(a *PendingAppend) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, a); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		return 0, context.Cause(a.ctx)
	}
	select {
	case <-a.done:
		return a.last, a.err
	default:
		return 0, fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, context.Cause(a.ctx))
	}
}

// work stores the waiting appends, batch after batch, until so few are waiting or being
// published that a publish for each is quicker again.
func (c *committer) work() {
	for {
		c.mu.Lock()
		members := c.take()
		if c.plain+len(members) <= c.from() && len(c.queue) == 0 {
			c.batching = false
			c.plain += len(members)
			c.mu.Unlock()
			for _, a := range members {
				c.publishPlain(a)
			}
			return
		}
		c.mu.Unlock()
		c.commit(members)
	}
}

func (c *committer) publishPlain(a *PendingAppend) {
	done := func(last uint64, err error) {
		a.finish(last, err)
		c.mu.Lock()
		c.plain--
		c.mu.Unlock()
	}
	if !c.log.Spawn(func() { done(c.log.Publish(a.ctx, a.Messages)) }) {
		done(0, eventlog.ErrClosed)
	}
}

// take returns the members of the next batch: at most one append per session, since the
// comparison of a second one depends on the first.
func (c *committer) take() []*PendingAppend {
	var members, left []*PendingAppend
	taken := map[string]bool{}
	messages, bytes := 0, 0
	for _, a := range c.queue {
		if err := context.Cause(a.ctx); err != nil {
			a.finish(0, err) // it was never sent
			continue
		}
		fits := len(members) == 0 || messages+len(a.Messages) <= c.room && bytes+a.bytes <= groupBytes
		if taken[a.Session] || !fits {
			left = append(left, a)
			continue
		}
		taken[a.Session] = true
		members = append(members, a)
		messages, bytes = messages+len(a.Messages), bytes+a.bytes
	}
	c.queue = left
	return members
}

// commit stores members as one batch. If it is refused, the members whose comparison
// fails receive that error, and the others are sent again.
func (c *committer) commit(members []*PendingAppend) {
	for len(members) > 0 {
		var messages []*nats.Msg
		for _, a := range members {
			messages = append(messages, a.Messages...)
		}
		// Not a caller's context: if one caller leaves, the others must not fail.
		last, err := c.log.Publish(context.Background(), messages)
		if err == nil {
			c.log.Metrics.Grouped(len(members))
			at := last - uint64(len(messages))
			for _, a := range members {
				at += uint64(len(a.Messages))
				a.finish(at, nil)
			}
			return
		}
		conflict, refused := errors.AsType[*eventlog.ConflictError](err)
		switch {
		case len(members) == 1, errors.Is(err, eventlog.ErrOutcomeUnknown), errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrUnavailable):
			for _, a := range members {
				a.finish(0, err)
			}
			return
		case errors.Is(err, link.ErrInFlight):
			members = c.dropLosers(members)
		case !refused:
			c.commitEach(members)
			return
		default:
			members = c.dropRefused(members, conflict.Head)
		}
		members = slices.DeleteFunc(members, func(a *PendingAppend) bool {
			left := a.ctx.Err() != nil // the refused batch has stored none of its messages
			if left {
				a.finish(0, context.Cause(a.ctx))
			}
			return left
		})
	}
}

// dropRefused answers the members that a refusal with a head refers to, and returns the
// others.
func (c *committer) dropRefused(members []*PendingAppend, head uint64) []*PendingAppend {
	drop := c.dropCulprit
	if head == 0 { // the subject has no message
		drop = c.dropPurged
	}
	if left, found := drop(members, head); found {
		return left
	}
	return c.dropLosers(members)
}

// commitEach stores members separately, so that each gets its own answer.
func (c *committer) commitEach(members []*PendingAppend) {
	var wg sync.WaitGroup
	for _, a := range members {
		wg.Go(func() { a.finish(c.log.Publish(a.ctx, a.Messages)) })
	}
	wg.Wait()
}

// dropPurged answers the members whose expected record a purge, perhaps by another node,
// has removed from the log: there is no message left to compare with.
func (c *committer) dropPurged(members []*PendingAppend, _ uint64) (left []*PendingAppend, found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), link.AnswerTimeout)
	defer cancel()
	info, err := c.log.StreamInfo(ctx, layout.LogStream(c.partition), "")
	if err != nil {
		return nil, false
	}
	first := info.State.FirstSeq
	c.log.NoteFirst(c.partition, first)
	left = make([]*PendingAppend, 0, len(members))
	for _, a := range members {
		if a.Expected == 0 || a.Expected >= first || a.behindPurged() {
			left = append(left, a)
		} else {
			a.finish(0, &eventlog.ConflictError{})
		}
	}
	return left, len(left) < len(members)
}

// dropCulprit answers the member that a refusal refers to: the refusal has the last
// sequence of its subject, and the message there names the subject.
func (c *committer) dropCulprit(members []*PendingAppend, head uint64) (left []*PendingAppend, found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), link.AnswerTimeout)
	defer cancel()
	m, err := c.log.MessageAt(ctx, layout.LogStream(c.partition), head)
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(members, func(a *PendingAppend) bool { return a.Messages[0].Subject == m.Subject })
	if i < 0 || members[i].Expected == head {
		return nil, false
	}
	members[i].finish(0, &eventlog.ConflictError{Head: head})
	return slices.Delete(members, i, i+1), true
}

// dropLosers reads the heads of all members at once and answers those whose comparison
// can't succeed. If there is none, another append to one of the sessions is in flight;
// then each member is sent separately.
func (c *committer) dropLosers(members []*PendingAppend) []*PendingAppend {
	heads := make([]uint64, len(members))
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, a := range members {
		wg.Go(func() {
			heads[i], errs[i] = c.log.Head(context.Background(), a.Session)
			switch {
			case errors.Is(errs[i], eventlog.ErrSessionNotFound):
				errs[i] = nil
			case errs[i] != nil: // not sent again here; the caller retries
				errs[i] = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, errs[i])
			}
		})
	}
	wg.Wait()
	var left []*PendingAppend
	for i, a := range members {
		switch {
		case errs[i] != nil:
			a.finish(0, errs[i])
		case heads[i] != a.Expected:
			a.finish(0, &eventlog.ConflictError{Head: heads[i]})
		default:
			left = append(left, a)
		}
	}
	if len(left) == len(members) {
		c.commitEach(left)
		return nil
	}
	return left
}

func (a *PendingAppend) finish(last uint64, err error) {
	a.last, a.err = last, err
	close(a.done)
}
