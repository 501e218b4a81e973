package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// groupFrom is how many sessions must wait before their appends share a
	// batch. Under it a publish for each, all in flight, is quicker.
	groupFrom = 16
	// batchFrom is groupFrom of appends that are atomic batches themselves: one server stages a
	// batch in files of its own and syncs them, which takes milliseconds, however many records it has.
	batchFrom = 2
	// groupMessages and groupBytes bound a shared batch. Where only batches are shared and the
	// server takes more, it is ownMessages: an append of 1,000 still shares one with two others,
	// and appends that go by themselves wait for no more than some 40 ms of the server's time.
	groupMessages = 900
	ownMessages   = 3000
	groupBytes    = 16 << 20
)

// committer stores the appends of one partition.
//
// Where an append costs a disk sync or a round of replication, the appends of
// many sessions share it: from groupFrom waiting sessions on, what waits goes
// into one atomic batch while the one before is under way. A member of a batch
// is one append call, with its own comparison on its first message; a refused
// batch loses only the members whose comparison failed. Where a publish costs neither,
// appends of one record are published by themselves, and those of more
// share a batch from batchFrom on.
type committer struct {
	log     *store
	grouped bool // else appends of one record go by themselves
	room    int  // messages of a shared batch
	// begins is the partition's first sequence, or less: what precedes it was
	// purged, so that no comparison with it succeeds.
	begins atomic.Uint64

	mu       sync.Mutex
	plain    int              // publishes under way by themselves
	batching bool             // a goroutine is working on queue
	queue    []*pendingAppend // bounded by the callers, who wait
}

// pendingAppend is one call of Append.
type pendingAppend struct {
	session  string
	expected uint64
	messages []*nats.Msg
	records  []wire.Stored // what the messages hold
	blobs    []storedBlob  // for it
	since    uint64        // the log's last sequence before the blobs were stored
	bytes    int

	ctx  context.Context
	done chan struct{} // closed when last and err are set
	last uint64
	err  error

	tries int // that found another append in flight
}

// from is how many waiting appends share a batch.
func (c *committer) from() int {
	if c.grouped {
		return groupFrom
	}
	return batchFrom
}

// compare stores a if the session's last record in the log is the expected one.
// While the server can't compare, since it is replicating another append to the
// session, a is sent again, unless that other append turns out to be stored.
func (c *committer) compare(ctx context.Context, a *pendingAppend) (uint64, error) {
	for pause := minRefusedPause; ; {
		last, err := c.append(ctx, a)
		if !errors.Is(err, errInFlight) {
			return last, err
		}
		if head, err := c.log.Head(ctx, a.session); err == nil && head > a.expected {
			return 0, &eventlog.ConflictError{Head: head}
		}
		if err := c.log.rest(ctx, pause); err != nil {
			return 0, err
		}
		if a.tries++; a.tries > quickTries {
			pause = min(2*pause, maxRefusedPause)
		}
	}
}

// quickTries is how often an append is sent again within 1 to 2 ms. What is in
// flight for longer waits for a leader.
const quickTries = 50

// append stores a, by itself or in a batch. If ctx ends first, the error is its
// cause, with ErrOutcomeUnknown unless a was never sent.
func (c *committer) append(ctx context.Context, a *pendingAppend) (uint64, error) {
	if !c.grouped && len(a.messages) == 1 {
		return c.log.publish(ctx, a.messages)
	}
	c.mu.Lock()
	if !c.batching && c.plain < c.from() {
		c.plain++
		c.mu.Unlock()
		last, err := c.log.publish(ctx, a.messages)
		c.mu.Lock()
		c.plain--
		c.mu.Unlock()
		return last, err
	}
	a.ctx, a.done = ctx, make(chan struct{})
	c.queue = append(c.queue, a)
	if !c.batching {
		if !c.log.spawn(c.work) {
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

// leave ends the wait for a, whose context has ended. What is in a batch can't be
// taken back.
func (c *committer) leave(a *pendingAppend) (uint64, error) {
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

// work stores what waits, batch after batch, until so little waits and is under way by itself
// that a publish for each is quicker again.
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

func (c *committer) publishPlain(a *pendingAppend) {
	done := func(last uint64, err error) {
		a.finish(last, err)
		c.mu.Lock()
		c.plain--
		c.mu.Unlock()
	}
	if !c.log.spawn(func() { done(c.log.publish(a.ctx, a.messages)) }) {
		done(0, eventlog.ErrClosed)
	}
}

// take returns the members of the next batch: at most one append a session,
// since a second one's comparison depends on the first.
func (c *committer) take() []*pendingAppend {
	var members, left []*pendingAppend
	taken := map[string]bool{}
	messages, bytes := 0, 0
	for _, a := range c.queue {
		if err := context.Cause(a.ctx); err != nil {
			a.finish(0, err) // it was never sent
			continue
		}
		fits := len(members) == 0 || messages+len(a.messages) <= c.room && bytes+a.bytes <= groupBytes
		if taken[a.session] || !fits {
			left = append(left, a)
			continue
		}
		taken[a.session] = true
		members = append(members, a)
		messages, bytes = messages+len(a.messages), bytes+a.bytes
	}
	c.queue = left
	return members
}

// commit stores members as one batch. If it is refused, those whose
// comparison fails receive that, and the others go again.
func (c *committer) commit(members []*pendingAppend) {
	for len(members) > 0 {
		var messages []*nats.Msg
		for _, a := range members {
			messages = append(messages, a.messages...)
		}
		// Not a caller's context: one that leaves must not take the others
		// with it.
		last, err := c.log.publish(context.Background(), messages)
		if err == nil {
			c.log.metrics.grouped(len(members))
			at := last - uint64(len(messages))
			for _, a := range members {
				at += uint64(len(a.messages))
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
		case errors.Is(err, errInFlight):
			members = c.dropLosers(members)
		case !refused:
			c.commitEach(members)
			return
		default:
			members = c.dropRefused(members, conflict.Head)
		}
		members = slices.DeleteFunc(members, func(a *pendingAppend) bool {
			left := a.ctx.Err() != nil // the refused batch has stored nothing of it
			if left {
				a.finish(0, context.Cause(a.ctx))
			}
			return left
		})
	}
}

// dropRefused answers the members that a refusal with a head is about, and
// returns the others.
func (c *committer) dropRefused(members []*pendingAppend, head uint64) []*pendingAppend {
	drop := c.dropCulprit
	if head == 0 { // the subject has no message
		drop = c.dropPurged
	}
	if left, found := drop(members, head); found {
		return left
	}
	return c.dropLosers(members)
}

// commitEach stores members by themselves, so that each gets its own answer.
func (c *committer) commitEach(members []*pendingAppend) {
	var wg sync.WaitGroup
	for _, a := range members {
		wg.Go(func() { a.finish(c.log.publish(a.ctx, a.messages)) })
	}
	wg.Wait()
}

// dropPurged answers the members whose expected record a purge has removed from
// the log, perhaps by another node: nothing is left to compare with.
func (c *committer) dropPurged(members []*pendingAppend, _ uint64) (left []*pendingAppend, found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	state, err := c.log.stateOf(ctx, layout.LogStream(c.log.partitionOf(members[0].session)))
	if err != nil {
		return nil, false
	}
	c.begins.Store(state.First)
	left = make([]*pendingAppend, 0, len(members))
	for _, a := range members {
		if a.expected == 0 || a.expected >= state.First || a.behindPurged() {
			left = append(left, a)
		} else {
			a.finish(0, &eventlog.ConflictError{})
		}
	}
	return left, len(left) < len(members)
}

// dropCulprit answers the member that a refusal is about: the refusal holds
// the last sequence of its subject, and the message there names the subject.
func (c *committer) dropCulprit(members []*pendingAppend, head uint64) (left []*pendingAppend, found bool) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	m, err := c.log.messageAt(ctx, layout.LogStream(c.log.partitionOf(members[0].session)), head)
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(members, func(a *pendingAppend) bool { return a.messages[0].Subject == m.Subject })
	if i < 0 || members[i].expected == head {
		return nil, false
	}
	members[i].finish(0, &eventlog.ConflictError{Head: head})
	return slices.Delete(members, i, i+1), true
}

// dropLosers reads the heads of all members at once and answers those whose
// comparison can't succeed. If there is none, another append to one of the
// sessions is in flight; then each member goes by itself.
func (c *committer) dropLosers(members []*pendingAppend) []*pendingAppend {
	heads := make([]uint64, len(members))
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, a := range members {
		wg.Go(func() {
			heads[i], errs[i] = c.log.Head(context.Background(), a.session)
			switch {
			case errors.Is(errs[i], eventlog.ErrSessionNotFound):
				errs[i] = nil
			case errs[i] != nil: // not sent again by us; the caller tries again
				errs[i] = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, errs[i])
			}
		})
	}
	wg.Wait()
	var left []*pendingAppend
	for i, a := range members {
		switch {
		case errs[i] != nil:
			a.finish(0, errs[i])
		case heads[i] != a.expected:
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

func (a *pendingAppend) finish(last uint64, err error) {
	a.last, a.err = last, err
	close(a.done)
}
