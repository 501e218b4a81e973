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
	then *atomic.Pointer[func()]
}

func (l pausedLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		some := false
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if some = true; !yield(r, err) {
				break
			}
		}
		if !some {
			return
		}
		if f := l.then.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// newPausedRig returns a rig, and a function that makes the next request about a response stop
// after it has read that, until f returns.
func newPausedRig(t *testing.T) (g *rig, pause func(id string, f func())) {
	then := new(atomic.Pointer[func()])
	g = newRig(t, func(o *httpapi.Options) { o.Log = pausedLog{o.Log, then} })
	return g, func(id string, f func()) {
		g.get("/responses/" + id) // so that the server has the session's state
		then.Store(&f)
	}
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
	pause(first["id"].(string), func() {
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
