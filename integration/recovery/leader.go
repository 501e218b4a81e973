package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// Producers append while the leader of the log changes: each to a session of its
// own, one chunk after the other, and as soon as it may.
const (
	producers    = 8
	producerPace = 20 * time.Millisecond
)

// producer appends to its own session.
type producer struct {
	session string
	node    *client.Client

	mu     sync.Mutex
	acks   []time.Time
	failed int // requests that had to be made again
	last   error
}

// append appends until ctx ends. What is not acknowledged is sent again under
// the same key.
func (p *producer) append(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		chunk := deployment.TextChunk(p.session, fmt.Sprint(n, " "))
		for ctx.Err() == nil {
			_, err := p.node.AppendChunks(ctx, p.session, chunk, client.AppendOptions{IdempotencyKey: fmt.Sprint(n)})
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			p.mu.Lock()
			p.failed, p.last = p.failed+1, err
			p.mu.Unlock()
			_ = deployment.Sleep(ctx, 5*time.Millisecond) // the loop asks ctx
		}
		p.mu.Lock()
		p.acks = append(p.acks, time.Now())
		p.mu.Unlock()
		_ = deployment.Sleep(ctx, producerPace)
	}
}

// ackedSince is how many acks there were since a time.
func (p *producer) ackedSince(t time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ack := range p.acks {
		if ack.After(t) {
			n++
		}
	}
	return n
}

// gap is the longest time between two acks in a row of which the second came
// after t.
func (p *producer) gap(t time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ack := range p.acks {
		if i > 0 && ack.After(t) {
			longest = max(longest, ack.Sub(p.acks[i-1]))
		}
	}
	return longest
}

// gaps measures how long no append is acknowledged when something happens to the
// leader of the log, and producers are at the nodes. happen returns how to undo
// it, if need be.
func (b *bench) gaps(d *deployment.Deployment, what string, nodes []*deployment.Node, happen func() (undo func() error, err error)) error {
	var longest deployment.Samples
	failed := 0
	for i := range b.times {
		deployment.Say("%s, %d of %d", what, i+1, b.times)
		gaps, f, err := b.gap(what, nodes, happen)
		if err != nil {
			return err
		}
		longest, failed = append(longest, gaps...), failed+f
		if err := d.Streams.WaitHealthy(b.ctx); err != nil {
			return err
		}
	}
	b.report.add(fmt.Sprintf("%s: longest gap between two acks of a producer (%d requests failed first)", what, failed), d.Durability, longest...)
	return nil
}

func (b *bench) gap(what string, nodes []*deployment.Node, happen func() (func() error, error)) (gaps deployment.Samples, failed int, err error) {
	ctx, cancel := context.WithCancel(b.ctx)
	var busy sync.WaitGroup
	defer busy.Wait()
	defer cancel()
	all := make([]*producer, producers)
	for i := range all {
		b.begun++
		all[i] = &producer{session: fmt.Sprint("producer-", b.begun), node: nodes[i%len(nodes)].API}
		busy.Go(func() { all[i].append(ctx) })
	}
	acked := func(since time.Time, n int) error {
		return b.wait(what+": no ack", func() (bool, error) {
			for _, p := range all {
				if p.ackedSince(since) < n {
					return false, nil
				}
			}
			return true, nil
		})
	}
	if err := acked(time.Time{}, 20); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	undo, err := happen()
	if err != nil {
		return nil, 0, err
	}
	// The last of them may have been on their way before.
	if err := acked(began, 20); err != nil {
		return nil, 0, err
	}
	if err := deployment.Sleep(b.ctx, settled); err != nil {
		return nil, 0, err
	}
	cancel()
	busy.Wait()
	for _, p := range all {
		gaps = append(gaps, p.gap(began))
		failed += p.failed
		if p.last != nil {
			deployment.Say("%s got %d refusals, the last one: %v", p.session, p.failed, p.last)
		}
	}
	if undo != nil {
		return gaps, failed, undo()
	}
	return gaps, failed, nil
}
