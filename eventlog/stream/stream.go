// Package stream filters, joins and collects streams of chunks. An eventlog.Stream is lazy,
// and so is what its filters return: nothing is read before the result is.
package stream

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/helixd/helixd/eventlog"
)

// FilterWith keeps the chunks for which keep is true.
func FilterWith(s eventlog.Stream, keep func(eventlog.Chunk) bool) eventlog.Stream {
	return func(yield func(eventlog.StoredChunk, error) bool) {
		for c, err := range s {
			if err == nil && !keep(c.Chunk) {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// FilterByAgentID keeps the chunks of one session of the tree.
func FilterByAgentID(s eventlog.Stream, agentID string) eventlog.Stream {
	return FilterWith(s, func(c eventlog.Chunk) bool { return eventlog.BaseOf(c).AgentID == agentID })
}

// FilterByAgentType keeps the chunks of one type of agent.
func FilterByAgentType(s eventlog.Stream, agentType string) eventlog.Stream {
	return FilterWith(s, func(c eventlog.Chunk) bool { return eventlog.BaseOf(c).AgentType == agentType })
}

// FilterByType keeps the chunks of the given types.
func FilterByType(s eventlog.Stream, types ...string) eventlog.Stream {
	return FilterWith(s, func(c eventlog.Chunk) bool { return slices.Contains(types, c.Type()) })
}

// ExcludeTypes leaves out the chunks of the given types.
func ExcludeTypes(s eventlog.Stream, types ...string) eventlog.Stream {
	return FilterWith(s, func(c eventlog.Chunk) bool { return !slices.Contains(types, c.Type()) })
}

// Take ends after the first n chunks, without waiting for a further one.
func Take(s eventlog.Stream, n int) eventlog.Stream {
	return func(yield func(eventlog.StoredChunk, error) bool) {
		left := n
		if left <= 0 {
			return
		}
		for c, err := range s {
			left--
			if !yield(c, err) || err != nil || left == 0 {
				return
			}
		}
	}
}

// Skip leaves out the first n chunks.
func Skip(s eventlog.Stream, n int) eventlog.Stream {
	return func(yield func(eventlog.StoredChunk, error) bool) {
		left := n
		for c, err := range s {
			if err == nil && left > 0 {
				left--
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// Combine yields the chunks of all streams as they come; those of one stream
// stay in order. It ends when all have ended, or with the first error. Each
// stream is made by a function, with a context that ends when the consumer
// stops: a stream that waits would otherwise never return.
func Combine(ctx context.Context, open ...func(context.Context) eventlog.Stream) eventlog.Stream {
	return func(yield func(eventlog.StoredChunk, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type item struct {
			c     eventlog.StoredChunk
			err   error
			ended bool
		}
		items := make(chan item)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		for _, o := range open {
			wg.Go(func() {
				send := func(i item) bool {
					select {
					case items <- i:
						return true
					case <-ctx.Done():
						return false
					}
				}
				for c, err := range o(ctx) {
					if !send(item{c: c, err: err}) {
						return
					}
				}
				send(item{ended: true})
			})
		}
		for running := len(open); running > 0; {
			select {
			case i := <-items:
				if i.ended {
					running--
				} else if !yield(i.c, i.err) || i.err != nil {
					return
				}
			case <-ctx.Done():
				yield(eventlog.StoredChunk{}, context.Cause(ctx))
				return
			}
		}
	}
}

// CollectText returns the text of all text deltas.
func CollectText(s eventlog.Stream) (string, error) {
	var b strings.Builder
	for c, err := range s {
		if err != nil {
			return b.String(), err
		}
		if d, ok := c.Chunk.(*eventlog.TextDelta); ok {
			b.WriteString(d.Delta)
		}
	}
	return b.String(), nil
}

// CollectAll returns all chunks.
func CollectAll(s eventlog.Stream) ([]eventlog.StoredChunk, error) {
	var all []eventlog.StoredChunk
	for c, err := range s {
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}
