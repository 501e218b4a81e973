package httpapi_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
)

// failingLog fails at everything, and says more than clients may know.
type failingLog struct{ eventlog.Log }

var errInternal = errors.New("dial nats://admin:hunter2@10.0.0.7:4222: connection refused")

func (failingLog) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	return 0, errInternal
}

func (failingLog) Head(context.Context, string) (uint64, error) { return 0, errInternal }

func (failingLog) Read(context.Context, string, uint64, uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, errInternal) }
}

func (failingLog) Follow(context.Context, string, uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, errInternal) }
}

func (failingLog) Sessions(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errInternal) }
}

func (failingLog) Erase(context.Context, string) (eventlog.Erasure, error) {
	return eventlog.Erasure{}, errInternal
}

// TestInternalErrorsAreNotShown: by no route. The log line has it all, and the
// request's id leads there.
func TestInternalErrorsAreNotShown(t *testing.T) {
	a := newAPIOn(t, failingLog{memory.New()}, []agentloop.Agent{writer()}, func(o *httpapi.Options) {
		o.Chat, o.ReadModels = &chat.Options{}, foldedRows{o.Log}
		o.Memories = remembering(o.Log)
	})
	eachRoute(t, func(t *testing.T, rt httpapi.TestRoute, c routeCase) {
		got := a.request(rt.Method, c.target(rt, "s"), c.bodyFor(t, "s", "s-fork"))
		if c.public && rt.Pattern != "/readyz" || rt.Pattern == "/metrics" || rt.Pattern == "/openapi.json" { // they know nothing of the log
			require.Equal(t, 200, got.status)
			return
		}
		for _, part := range []string{"nats", "hunter2", "10.0.0.7", "dial", "refused", "eventlog", "jetstream", "httpapi:"} {
			require.NotContains(t, got.body, part)
		}
		switch rt.Pattern {
		case "/readyz":
			require.Equal(t, 503, got.status)
			require.Contains(t, a.logs.String(), errInternal.Error())
			return
		case "/admin/reload": // it asks no log
			require.Equal(t, 200, got.status)
			return
		case "/backup": // this log can't be copied
			require.Equal(t, 501, got.status)
			return
		case "/retention": // this log has nothing to purge
			require.Equal(t, 400, got.status)
			return
		}
		body := got.failed(t, 500, api.CodeInternalError)
		require.Equal(t, api.ErrorBody{Error: "internal error", Code: api.CodeInternalError}, body)
		require.Regexp(t, errInternal.Error()+`.*requestId=`+got.header.Get("X-Request-Id"), a.logs.String())
	})
}
