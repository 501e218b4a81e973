package eventlog

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
)

// StoredChunk is a chunk with its sequence. The chunk must not be changed.
type StoredChunk struct {
	Chunk    Chunk
	Sequence uint64
}

// Stream is a lazy stream of chunks; an error is last.
type Stream = iter.Seq2[StoredChunk, error]

// Chunks returns the chunks among records, decoded. A record that is not a
// chunk is left out; one that can't be decoded is an error.
func Chunks(records iter.Seq2[Record, error]) Stream {
	return func(yield func(StoredChunk, error) bool) {
		for r, err := range records {
			if err == nil && r.Kind != KindChunk {
				continue
			}
			var c Chunk
			if err == nil {
				c, err = r.Chunk()
			}
			if err != nil {
				yield(StoredChunk{}, err)
				return
			}
			if !yield(StoredChunk{Chunk: c, Sequence: r.Sequence}, nil) {
				return
			}
		}
	}
}

// FilterWith keeps the chunks for which keep is true.
func FilterWith(s Stream, keep func(Chunk) bool) Stream {
	return func(yield func(StoredChunk, error) bool) {
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
func FilterByAgentID(s Stream, agentID string) Stream {
	return FilterWith(s, func(c Chunk) bool { return c.base().AgentID == agentID })
}

// FilterByAgentType keeps the chunks of one type of agent.
func FilterByAgentType(s Stream, agentType string) Stream {
	return FilterWith(s, func(c Chunk) bool { return c.base().AgentType == agentType })
}

// FilterByType keeps the chunks of the given types.
func FilterByType(s Stream, types ...string) Stream {
	return FilterWith(s, func(c Chunk) bool { return slices.Contains(types, c.Type()) })
}

// ExcludeTypes leaves out the chunks of the given types.
func ExcludeTypes(s Stream, types ...string) Stream {
	return FilterWith(s, func(c Chunk) bool { return !slices.Contains(types, c.Type()) })
}

// Take ends after the first n chunks, without waiting for a further one.
func Take(s Stream, n int) Stream {
	return func(yield func(StoredChunk, error) bool) {
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
func Skip(s Stream, n int) Stream {
	return func(yield func(StoredChunk, error) bool) {
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
func Combine(ctx context.Context, open ...func(context.Context) Stream) Stream {
	return func(yield func(StoredChunk, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type item struct {
			c     StoredChunk
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
				yield(StoredChunk{}, context.Cause(ctx))
				return
			}
		}
	}
}

// CollectText returns the text of all text deltas.
func CollectText(s Stream) (string, error) {
	var b strings.Builder
	for c, err := range s {
		if err != nil {
			return b.String(), err
		}
		if d, ok := c.Chunk.(*TextDelta); ok {
			b.WriteString(d.Delta)
		}
	}
	return b.String(), nil
}

// CollectAll returns all chunks.
func CollectAll(s Stream) ([]StoredChunk, error) {
	var all []StoredChunk
	for c, err := range s {
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}
