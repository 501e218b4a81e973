package responses_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

// pausedLog calls a function once after the server has read a session's records, before the
// request that has read them continues.
type pausedLog struct {
	eventlog.Log
	then *atomic.Pointer[paused]
}

type paused struct {
	state bool // after a state, which is read from the beginning; else after a run
	call  func()
}

func (l pausedLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		some := false
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if some = true; !yield(r, err) {
				break
			}
		}
		if f := l.then.Load(); some && f != nil && f.state == (from == 0) && l.then.CompareAndSwap(f, nil) {
			f.call()
		}
	}
}

// newPausedRig returns a rig, and a function that makes the next request about a response stop
// after it has read that, until f returns.
func newPausedRig(t *testing.T) (g *rig, pause func(f func())) {
	then := new(atomic.Pointer[paused])
	g = newRig(t, func(o *httpapi.Options) { o.Log = pausedLog{o.Log, then} })
	return g, func(f func()) { then.Store(&paused{call: f}) }
}

// A cancellation that finds its response ended leaves the next one alone.
func TestACancellationStopsItsResponseOnly(t *testing.T) {
	t.Parallel()
	g, pause := newPausedRig(t)
	_, conversation := g.send("POST", "/conversations", nil)
	first := g.create(object{"input": "slow", "background": true, "conversation": conversation["id"]})
	path := "/responses/" + first["id"].(string)
	require.Eventually(t, func() bool { return textOf(g.get(path)) == "one " }, within, 10*time.Millisecond)
	var next object
	pause(func() {
		g.slow <- struct{}{}
		require.Eventually(t, func() bool { return g.get(path)["status"] == "completed" }, within, 10*time.Millisecond)
		next = g.create(object{"input": "slow", "background": true, "conversation": conversation["id"]})
	})
	status, cancelled := g.send("POST", path+"/cancel", nil)
	require.Equal(t, 200, status, "%v", cancelled)
	require.Equal(t, "completed", cancelled["status"])
	require.NotNil(t, next)
	close(g.slow)
	path = "/responses/" + next["id"].(string)
	require.Eventually(t, func() bool { return g.get(path)["status"] != "in_progress" && g.get(path)["status"] != "queued" }, within, 10*time.Millisecond)
	require.Equal(t, "completed", g.get(path)["status"])
}

// A response that a request continues while it is deleted takes nothing of what follows with it.
func TestADeletionKeepsAContinuation(t *testing.T) {
	t.Parallel()
	g, pause := newPausedRig(t)
	first := g.create(object{"input": "hello"})
	var next object
	pause(func() {
		next = g.create(object{"input": "hello", "previous_response_id": first["id"]})
	})
	status, deleted := g.send("DELETE", "/responses/"+first["id"].(string), nil)
	require.Equal(t, 200, status, "%v", deleted)
	require.NotNil(t, next)
	require.Equal(t, "Hello there.", textOf(g.get("/responses/"+next["id"].(string))))
	g.refused(404, "GET", "/responses/"+first["id"].(string), nil)
}

// A request that continues a response while that is deleted does not begin its session again,
// without what was said before.
func TestADeletedResponseIsNotContinued(t *testing.T) {
	t.Parallel()
	g, pause := newPausedRig(t)
	first := g.create(object{"input": "hello"})
	path := "/responses/" + first["id"].(string)
	pause(func() {
		status, deleted := g.send("DELETE", path, nil)
		require.Equal(t, 200, status, "%v", deleted)
	})
	status, next := g.send("POST", "/responses", object{"model": "brain", "input": "context", "previous_response_id": first["id"]})
	require.Equal(t, 404, status, "%v", next)
	g.refused(404, "DELETE", path, nil)
	require.Zero(t, g.sessions())
}

// Items that were added after a response are something else in its session: its deletion leaves them.
func TestADeletionKeepsItemsThatWereAdded(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"input": "hello"})
	path := "/conversations/conv_" + sessionOf(first) + "/items"
	status, added := g.send("POST", path, object{"items": []any{object{"role": "user", "content": "Remember me."}}})
	require.Equal(t, 200, status, "%v", added)
	status, deleted := g.send("DELETE", "/responses/"+first["id"].(string), nil)
	require.Equal(t, 200, status, "%v", deleted)
	g.refused(404, "GET", "/responses/"+first["id"].(string), nil)
	all := g.get(path)["data"].([]any)
	require.Equal(t, added["data"].([]any)[0], all[0])
}

// A request for a conversation that is deleted meanwhile does not begin it again.
func TestADeletedConversationIsNotContinued(t *testing.T) {
	t.Parallel()
	then := new(atomic.Pointer[paused])
	g := newRig(t, func(o *httpapi.Options) { o.Log = pausedLog{o.Log, then} })
	_, conversation := g.send("POST", "/conversations", nil)
	g.create(object{"input": "hello", "conversation": conversation["id"]})
	path := "/conversations/" + conversation["id"].(string)
	then.Store(&paused{state: true, call: func() {
		status, deleted := g.send("DELETE", path, nil)
		require.Equal(t, 200, status, "%v", deleted)
	}})
	status, next := g.send("POST", "/responses", object{"model": "brain", "input": "context", "conversation": conversation["id"]})
	require.Equal(t, 404, status, "%v", next)
	g.refused(404, "GET", path, nil)
	require.Zero(t, g.sessions())
}
