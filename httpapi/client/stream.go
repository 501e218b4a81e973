package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Event is an element of a session's stream: a
// [ChunkEvent], or the last one, which is an [EndEvent] or an [ErrorEvent].
type Event = remote.Event

// The events.
type (
	ChunkEvent = remote.ChunkEvent
	EndEvent   = remote.EndEvent
	ErrorEvent = remote.ErrorEvent
)

// Stream yields a session's events after sequence from, then what is live,
// until an EndEvent or an ErrorEvent. A connection that breaks is made again,
// after the last chunk: each chunk is yielded once and in order. Else an
// error is last: what the server refuses, [ErrOutOfOrder], the cause of a ctx
// that has ended, or, when Options.MaxRetries attempts in a row have brought
// no chunk, what the last one failed with. Connections that have lasted for
// 30 s don't count as failed.
//
// Chunks that were truncated meanwhile are not taken back: a stream_resync chunk
// reports them.
func (c *Client) Stream(ctx context.Context, sessionID string, from uint64) iter.Seq2[Event, error] {
	return c.events(ctx, from, func(seen uint64) request {
		return request{Request: remotehttp.StreamRequest(sessionID, seen), safe: true}
	})
}

// events yields the events of a stream after sequence seen, which at asks for
// again when a connection breaks.
func (c *Client) events(ctx context.Context, seen uint64, at func(seen uint64) request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		seen, k := seen, at(seen)
		err := c.follow(ctx, &k, remotehttp.EventStream, func(a *remotehttp.Response, moved func()) error {
			var before uint64 // of this connection
			for e, err := range a.Events() {
				if err != nil {
					return err
				}
				if chunk, ok := e.(ChunkEvent); ok {
					if chunk.Sequence < before {
						return fmt.Errorf("%w: %d comes after %d", ErrOutOfOrder, chunk.Sequence, before)
					}
					before = chunk.Sequence
					if chunk.Sequence <= seen {
						continue
					}
					seen = chunk.Sequence
					k = at(seen)
					moved()
				}
				if !yield(e, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}
