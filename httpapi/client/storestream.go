package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
)

// StoreEvent is an element of a session's stream as stores see it: a [StoreChunk], a [StoreStatus], a [StoreTruncated], or the last one,
// which is a [StoreEnd] or a [StoreFail].
type StoreEvent interface{ isStoreEvent() }

type (
	// StoreChunk is a chunk of the session.
	StoreChunk struct {
		Sequence uint64
		Chunk    eventlog.Chunk
	}
	// StoreStatus says that the stream pauses or continues.
	StoreStatus struct {
		Status eventlog.StreamStatus // paused or active
	}
	// StoreTruncated says that records were truncated, up to AtSequence. A client
	// that has all chunks up to there has the truncated ones, too; from then on it gets only
	// chunks that are left.
	StoreTruncated struct {
		TruncatedAtStep int    // the last step that was left
		AtSequence      uint64 // 0: not known
	}
	// StoreEnd ends a stream that is complete.
	StoreEnd struct {
		FinalOutput json.RawMessage // nil: none
	}
	// StoreFail ends a stream that has failed.
	StoreFail struct {
		Error string // fit to be shown
	}
)

func (StoreChunk) isStoreEvent()     {}
func (StoreStatus) isStoreEvent()    {}
func (StoreTruncated) isStoreEvent() {}
func (StoreEnd) isStoreEvent()       {}
func (StoreFail) isStoreEvent()      {}

// StoreStream is [Client.Stream] with the events of GET /sessions/{id}/stream: a pause does not
// end it. Each chunk is yielded once and in order, across connections that
// break; other events that occur between two connections are lost.
func (c *Client) StoreStream(ctx context.Context, sessionID string, from uint64) iter.Seq2[StoreEvent, error] {
	return func(yield func(StoreEvent, error) bool) {
		seen := from
		k := get("stream", nil).of("sessions", sessionID)
		k.Accept = remotehttp.EventStream
		k.Query = behind(seen)
		err := c.follow(ctx, &k, remotehttp.EventStream, func(a *remotehttp.Response, moved func()) error {
			for raw, err := range a.RawEvents() {
				if err != nil {
					return err
				}
				e, err := storeEvent(a, raw)
				if err != nil {
					return err
				}
				if chunk, ok := e.(StoreChunk); ok {
					if chunk.Sequence <= seen {
						return fmt.Errorf("%w: %d comes after %d", ErrOutOfOrder, chunk.Sequence, seen)
					}
					seen = chunk.Sequence
					k.Query = behind(seen)
					moved()
				}
				_, ended := e.(StoreEnd)
				_, failed := e.(StoreFail)
				if e != nil && !yield(e, nil) || ended || failed {
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

func behind(sequence uint64) url.Values {
	return url.Values{"fromSequence": {strconv.FormatUint(sequence, 10)}}
}

// storeEvent returns nil for an event of a type that it does not know: later
// versions have more.
func storeEvent(a *remotehttp.Response, raw remotehttp.RawEvent) (StoreEvent, error) {
	var d struct {
		Type            string
		Chunk           json.RawMessage
		Sequence        uint64
		FinalOutput     json.RawMessage
		Error           string
		Status          eventlog.StreamStatus
		TruncatedAtStep int
		AtSequence      uint64
	}
	if json.Unmarshal(raw.Data, &d) != nil {
		return nil, fmt.Errorf("%w: an event is no JSON object", ErrMalformed)
	}
	switch d.Type {
	case "chunk":
		chunk, err := eventlog.DecodeChunk(d.Chunk)
		if err != nil || d.Sequence == 0 {
			return nil, fmt.Errorf("%w: the chunk of sequence %d", ErrMalformed, d.Sequence)
		}
		return StoreChunk{d.Sequence, chunk}, nil
	case "status":
		return StoreStatus{d.Status}, nil
	case "truncated":
		return StoreTruncated{d.TruncatedAtStep, d.AtSequence}, nil
	case "end":
		return StoreEnd{d.FinalOutput}, nil
	case "fail":
		return StoreFail{a.Hide(d.Error)}, nil
	}
	return nil, nil
}
