package responses_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi"
)

// erasingLog calls functions once: late before a session is erased, and ended when a follower is about to read
// that a run has ended.
type erasingLog struct {
	eventlog.Log
	late, ended atomic.Pointer[func(session string)]
	followed    atomic.Bool
}

func newErasingRig(t *testing.T) (*rig, *erasingLog) {
	l := new(erasingLog)
	return newRigOn(t, func(log eventlog.Log) eventlog.Log {
		l.Log = log
		return l
	}), l
}

func (l *erasingLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if !eventlog.IsMemoryLog(session) {
		if f := l.late.Swap(nil); f != nil {
			(*f)(session)
		}
	}
	return l.Log.Erase(ctx, session)
}

func (l *erasingLog) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		l.followed.Store(true)
		for r, err := range l.Log.Follow(ctx, session, from) {
			if r.Type == (*fact.RunEnded)(nil).Type() {
				if f := l.ended.Swap(nil); f != nil {
					(*f)(session)
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// A response that is not stored leaves nothing of its own session. If that is gone already, the next session of
// the id, which an equal request has made, stays.
func TestAResponseThatIsNotStoredLeavesTheNextSession(t *testing.T) {
	t.Parallel()
	g, log := newErasingRig(t)
	type made struct {
		status int
		body   object
	}
	send := func() <-chan made {
		answers := make(chan made, 1)
		go func() {
			status, body := g.keyed("k", object{"model": "brain", "input": "slow", "store": false})
			answers <- made{status, body}
		}()
		return answers
	}
	var next <-chan made
	late := func(session string) {
		_, err := g.log.Erase(t.Context(), session)
		require.NoError(t, err)
		next = send()
		require.Eventually(t, func() bool {
			_, err := g.log.Head(t.Context(), session)
			return err == nil
		}, within, time.Millisecond)
	}
	log.late.Store(&late)
	first := send()
	g.slow <- struct{}{}
	require.Equal(t, 200, (<-first).status)
	close(g.slow)
	got := <-next
	require.Equal(t, 200, got.status, "%v", got.body)
	require.Equal(t, "one two", textOf(got.body))
	require.Eventually(t, func() bool { return g.sessions() == 0 }, within, time.Millisecond)
}

// A session that is continued while a response that is not stored ends is kept.
func TestAResponseThatIsNotStoredLeavesWhatFollows(t *testing.T) {
	t.Parallel()
	log := new(erasingLog)
	g := newRig(t, func(o *httpapi.Options) { log.Log, o.Log = o.Log, log })
	ended := func(session string) {
		run, err := g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: session, AgentType: "brain", Messages: []agentloop.Input{{Content: "hello"}},
		})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
	}
	log.ended.Store(&ended)
	answers := make(chan object, 1)
	go func() {
		_, o := g.send("POST", "/responses", object{"model": "brain", "input": "slow", "store": false})
		answers <- o
	}()
	require.Eventually(t, log.followed.Load, within, time.Millisecond) // else the end may be read, and not followed
	g.slow <- struct{}{}
	first := <-answers
	require.Equal(t, "one two", textOf(first), "%v", first)
	require.Len(t, g.get("/conversations/conv_" + sessionOf(first) + "/items")["data"], 5)
}

// The fork of a request that was refused is erased, but not the next session of its id.
func TestARefusedContinuationLeavesTheNextSession(t *testing.T) {
	t.Parallel()
	g, log := newErasingRig(t)
	first := g.create(object{"input": "hello"})
	g.create(object{"input": "hello", "previous_response_id": first["id"]})
	sessions := g.sessions()
	late := func(session string) {
		_, err := g.log.Erase(t.Context(), session)
		require.NoError(t, err)
		_, err = g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: session, AgentType: "brain", Messages: []agentloop.Input{{Content: "hello"}},
		})
		require.NoError(t, err)
	}
	log.late.Store(&late)
	g.refused(400, "POST", "/responses", object{
		"model": "brain", "input": "hello", "previous_response_id": first["id"],
		"tools": []any{object{"type": "function", "name": "clock", "parameters": object{"type": "object"}}},
	})
	require.Equal(t, sessions+1, g.sessions())
}

// A deletion erases the session that its request has found, not the next one of the id.
func TestADeletionLeavesTheNextSession(t *testing.T) {
	t.Parallel()
	g, log := newErasingRig(t)
	for _, conversation := range []bool{false, true} {
		made := g.create(object{"input": "hello"})
		path := "/responses/" + made["id"].(string)
		if conversation {
			path = "/conversations/conv_" + sessionOf(made)
		}
		late := func(session string) {
			_, err := g.log.Erase(t.Context(), session)
			require.NoError(t, err)
			_, err = g.loop.Execute(t.Context(), engine.StartRequest{
				SessionID: session, AgentType: "brain", Messages: []agentloop.Input{{Content: "hello"}},
			})
			require.NoError(t, err)
		}
		log.late.Store(&late)
		g.refused(404, "DELETE", path, nil)
		_, err := g.log.Head(t.Context(), sessionOf(made))
		require.NoError(t, err, path)
	}
}

// pendingLog reports that bytes of each erased session are left, as a cluster does, and err.
type pendingLog struct {
	eventlog.Log
	err error
}

func (l *pendingLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := l.Log.Erase(ctx, session)
	if err == nil {
		e.Pending, err = true, l.err
	}
	return e, err
}

// A deletion whose bytes are not all gone is answered with 202, as that of any session, also if it has only begun
// in time.
func TestADeletionThatIsPending(t *testing.T) {
	t.Parallel()
	log := new(pendingLog)
	g := newRigOn(t, func(l eventlog.Log) eventlog.Log {
		log.Log = l
		return log
	})
	for _, log.err = range []error{nil, context.DeadlineExceeded} {
		for _, conversation := range []bool{false, true} {
			made := g.create(object{"input": "hello"})
			path := "/responses/" + made["id"].(string)
			if conversation {
				path = "/conversations/conv_" + sessionOf(made)
			}
			status, deleted := g.send("DELETE", path, nil)
			require.Equal(t, 202, status, "%v", deleted)
			require.Equal(t, true, deleted["deleted"])
			g.refused(404, "DELETE", path, nil)
		}
	}
}
