package integration_test

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// follower is an SSE client that reconnects with the last id that it has
// seen, as a browser does, until an event ends the stream.
type follower struct {
	evidence.Reader
	err  error
	done chan struct{}
}

func follow(ctx context.Context, base, session string) *follower {
	f := &follower{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		c := deployment.Client(base, deployment.Within)
		ended := false
		for !ended && f.err == nil {
			err := deployment.Read(ctx, c, session, f.Last(), 0, func(e remotehttp.RawEvent) bool {
				ended, f.err = f.Take(e)
				return ended
			})
			switch deployment.Status(err) {
			case 0, http.StatusNotFound, http.StatusServiceUnavailable:
				// The daemon is down or stopping, or the session is not there yet.
			default:
				f.err = err
			}
			f.err = cmp.Or(f.err, deployment.Sleep(ctx, 3*time.Millisecond))
		}
	}()
	return f
}

// records returns the session's records, truncated ones included.
func (d *daemon) records(session string) []eventlog.Record {
	d.t.Helper()
	records, err := evidence.Parse(d.raw("/sessions/" + strings.ReplaceAll(url.PathEscape(session), ".", "%2E") + "/records?dead=1"))
	require.NoError(d.t, err)
	return records
}

// checkAgainst checks what a client saw of a session against its log: all
// that it got is there, in order, and of what survives it got everything
// exactly once.
func (f *follower) checkAgainst(t *testing.T, records []eventlog.Record) {
	t.Helper()
	require.NoError(t, f.err)
	dead, err := evidence.DeadOf(records)
	require.NoError(t, err)
	require.NoError(t, evidence.Complete(f.Seen, records, dead))
}
