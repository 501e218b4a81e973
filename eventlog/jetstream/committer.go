package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// groupFrom is how many sessions must wait before their appends share a
	// batch. Under it a publish for each, all in flight, is quicker.
	groupFrom = 16
	// groupMessages and groupBytes bound a shared batch.
	groupMessages = 900
	groupBytes    = 16 << 20
)

// committer stores the appends of one partition.
//
// Where an append costs a disk sync or a round of replication, the appends of
// many sessions share it: from groupFrom waiting sessions on, what waits goes
// into one atomic batch while the one before is under way. A member of a batch
// is one append call, with its own comparison on its first message; a refused
// batch loses only the members whose comparison failed.
type committer struct {
	log     *Log
	grouped bool // else each append goes by itself

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
	records  []stored  // what the messages hold
	blobs    []blobRef // that were stored for it
	bytes    int

	ctx  context.Context
	done chan struct{} // closed when last and err are set
	last uint64
	err  error
}

func (c *committer) append(ctx context.Context, a *pendingAppend) (uint64, error) {
	if !c.grouped {
		return c.log.publish(ctx, a.messages)
	}
	c.mu.Lock()
	if !c.batching && c.plain < groupFrom {
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
	<-a.done // work answers everybody, and looks at their contexts
	return a.last, a.err
}

// work stores what waits, batch after batch, until so little does that a
// publish for each is quicker again.
func (c *committer) work() {
	for {
		c.mu.Lock()
		members := c.take()
		if len(members) < groupFrom && len(c.queue) == 0 {
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
	if !c.log.spawn(func() { done(c.log.publish(context.Background(), a.messages)) }) {
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
		fits := len(members) == 0 || messages+len(a.messages) <= groupMessages && bytes+a.bytes <= groupBytes
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
// comparison fails are told so and the others go again.
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
		if len(members) == 1 || errors.Is(err, eventlog.ErrOutcomeUnknown) || errors.Is(err, eventlog.ErrClosed) {
			for _, a := range members {
				a.finish(0, err)
			}
			return
		}
		conflict, ok := errors.AsType[*eventlog.ConflictError](err)
		if !ok {
			c.commitEach(members)
			return
		}
		if left, found := c.dropCulprit(members, conflict.Head); found {
			members = left
		} else {
			members = c.dropLosers(members)
		}
	}
}

// commitEach stores members by themselves, so that each gets its own answer.
func (c *committer) commitEach(members []*pendingAppend) {
	var wg sync.WaitGroup
	for _, a := range members {
		wg.Go(func() { a.finish(c.log.publish(context.Background(), a.messages)) })
	}
	wg.Wait()
}

// dropCulprit answers the member that a refusal is about: the refusal holds
// the last sequence of its subject, and the message there names the subject.
func (c *committer) dropCulprit(members []*pendingAppend, head uint64) (left []*pendingAppend, found bool) {
	if head == 0 { // the subject has no message, or a race has none
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	m, err := c.log.messageAt(ctx, streamName(Partition(members[0].session, c.log.opts.Partitions)), head)
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(members, func(a *pendingAppend) bool { return a.messages[0].Subject == m.subject })
	if i < 0 || members[i].expected == head {
		return nil, false
	}
	members[i].finish(0, &eventlog.ConflictError{Head: head})
	return slices.Delete(members, i, i+1), true
}

// dropLosers reads the heads of all members at once and answers those whose
// comparison can't succeed. If none is found, the refusal was of the passing
// kind that a race on a cluster makes; then each goes by itself.
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
