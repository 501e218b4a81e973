package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/remoteids"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

var errTransportPanicked = errors.New("the transport failed unexpectedly")

// follow takes over the remote stream up to its end.
func (r *remoteCall) follow(ctx context.Context) (remote.Event, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	var from uint64
	var calls []fact.RemoteCall
	r.look(func(*projector.Session) {
		if child := r.tree.Get(r.id); child != nil {
			from, calls = child.RemoteSequence, slices.Clone(child.RemoteCalls)
		}
	})
	r.ids = remoteids.New(r.id, calls, r.uniqueCallID)
	ctx, cancel := context.WithCancel(ctx)
	events, failed := make(chan remote.Event, maxTakenOver), make(chan error, 1)
	room := semaphore.NewWeighted(maxTakenBytes) // for chunks that are not in the log yet
	go func() {
		defer close(events)
		defer func() {
			if p := recover(); p != nil {
				r.logger().Error("the transport of a remote agent panicked", eventlog.LogCall, r.c.ID, "panic", p, "stack", string(debug.Stack()))
				failed <- errTransportPanicked
			}
		}()
		for ev, err := range remote.Follow(ctx, r.Transport, r.id, from, remote.FollowOptions{
			Retries: r.StreamRetries, RetryBase: r.StreamRetryBase,
		}) {
			if err != nil {
				failed <- err
				return
			}
			if room.Acquire(ctx, sizeOfChunk(ev)) != nil {
				return
			}
			select {
			case events <- ev:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range events { //nolint:revive // until the goroutine has ended
		}
	}()
	for ev := range events {
		end, err := r.takeOver(ctx, ev, events, room)
		if end != nil || err != nil {
			return end, err
		}
	}
	select {
	case err := <-failed:
		return nil, err
	default:
		return nil, remote.ErrStreamDropped
	}
}

// Limits of the remote chunks that wait and are appended at once. A larger chunk is alone.
const (
	maxTakenOver  = 200
	maxTakenBytes = 4 << 20
)

// sizeOfChunk returns how much an event counts of maxTakenBytes.
func sizeOfChunk(ev remote.Event) int64 {
	chunk, _ := ev.(remote.ChunkEvent)
	return min(int64(len(chunk.Raw)), maxTakenBytes)
}

// takeOver appends what has come of the remote stream with its position, and
// returns its end if that is there.
func (r *remoteCall) takeOver(ctx context.Context, ev remote.Event, more <-chan remote.Event, room *semaphore.Weighted) (end remote.Event, err error) {
	var facts []record.Draft
	var position uint64
	var bytes int64
	defer func() { room.Release(bytes) }()
	for taken := 0; ev != nil; {
		chunk, ok := ev.(remote.ChunkEvent)
		if !ok {
			end = ev
			break
		}
		position = chunk.Sequence
		bytes += sizeOfChunk(chunk)
		if c := r.own(chunk); c != nil {
			facts = append(facts, record.Draft{Chunk: c, Run: r.c.RunID})
		}
		ev = nil
		if taken++; taken < maxTakenOver {
			select {
			case ev = <-more:
			default:
			}
		}
	}
	if position > 0 {
		facts = append(facts, record.Draft{Agent: r.id, Run: r.c.RunID, Fact: &fact.RemoteProgress{
			ToolCallID: r.c.ID, RunID: r.run, Sequence: position, Calls: r.ids.Progress(), Base: r.host.FactBase(r.id),
		}})
		if err := r.append(ctx, facts...); err != nil {
			return nil, recordError{err}
		}
	}
	return end, nil
}

// own returns a chunk as one of the sub-agent's session, or nil if it can't be
// one: a server's chunk never becomes one of another session or of another
// call. Its timestamps are the server's, for display only.
func (r *remoteCall) own(chunk remote.ChunkEvent) eventlog.Chunk {
	c := chunk.Chunk
	if !r.includes(eventlog.BaseOf(c).AgentID) {
		var members map[string]json.RawMessage
		if json.Unmarshal(chunk.Raw, &members) != nil {
			return nil
		}
		members["agentId"] = decide.Encoded(r.id)
		var err error
		if c, err = eventlog.DecodeChunk(decide.Encoded(members)); err != nil {
			return nil
		}
	}
	r.ids.Translate(eventlog.BaseOf(c).AgentID, c)
	switch c := c.(type) {
	case *eventlog.SubAgentStart:
		c.SubSessionID = r.ownSession(c.SubSessionID, c.CallID)
	case *eventlog.SubAgentEnd:
		c.SubSessionID = r.ownSession(c.SubSessionID, c.CallID)
	}
	entry, err := eventlog.NewChunk(c, eventlog.Labels{})
	if limit := r.host.Log.Info().MaxRecordBytes; err == nil && len(entry.Payload) > limit {
		err = fmt.Errorf("%w: %d bytes, at most %d", eventlog.ErrTooLarge, len(entry.Payload), limit)
	}
	if err != nil {
		r.logger().Warn("a remote agent's chunk is left out", eventlog.LogCall, r.c.ID, "error", err)
		return nil
	}
	return c
}

// ownSession is the session that a call of the remote agent has begun, under an
// id that is not another session's.
func (r *remoteCall) ownSession(session, call string) string {
	if session != r.id && r.includes(session) {
		return session
	}
	return projector.ChildID(r.id, projector.InfixCall, call)
}

// includes reports whether a session is the sub-agent's or one of its own
// sub-agents': another call's id may begin with this one's, and so may the id of
// another call's session.
func (r *remoteCall) includes(session string) bool {
	rest, ok := strings.CutPrefix(session, r.id)
	if !ok || rest == "" {
		return ok
	}
	others := false
	r.look(func(*projector.Session) {
		s := r.tree.Get(session)
		others = s != nil && s.Child != nil
	})
	return !others && slices.ContainsFunc(
		[]string{projector.InfixCall, projector.InfixAgent, projector.InfixRemote},
		func(infix string) bool { return strings.HasPrefix(rest, infix) },
	)
}
