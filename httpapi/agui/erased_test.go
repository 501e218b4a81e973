package agui_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

// pausedLog calls a function once after the server has read a session's records, before the request that has read
// them continues.
type pausedLog struct {
	eventlog.Log
	then atomic.Pointer[func()]
}

func (l *pausedLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if !yield(r, err) {
				break
			}
		}
		if f := l.then.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// A request for a thread that is erased meanwhile does not begin it again, without what was said before.
func TestAnErasedThreadIsNotContinued(t *testing.T) {
	t.Parallel()
	log := new(pausedLog)
	g := newRig(t, func(o *httpapi.Options) { log.Log, o.Log = o.Log, log })
	run, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "t", AgentType: "brain", Messages: []agentloop.Input{{Content: "hello", MessageID: "u1"}},
	})
	require.NoError(t, err)
	_, err = run.Result(t.Context())
	require.NoError(t, err)
	erase := func() {
		_, err := g.loop.Admin.Erase(t.Context(), "t")
		require.NoError(t, err)
	}
	log.then.Store(&erase)
	in := input("t", "r2", object{"messages": []any{user("u1", "hello"), object{"id": "turn-1-step-1", "role": "assistant", "content": "Hi."}, user("u2", "and now?")}})
	g.refused(404, in)
	_, err = g.log.Head(t.Context(), "t")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	frames(t, g.post(in)) // the client brings the conversation along
}
