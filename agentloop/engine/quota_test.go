package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

// oneSession is what a tenant with one session uses.
type oneSession struct{}

func (oneSession) TenantUse(context.Context, string, []string) (readmodel.TenantUse, error) {
	return readmodel.TenantUse{Sessions: 1, Bytes: 100}, nil
}

func (oneSession) Fresh(context.Context) readmodel.Fresh { return readmodel.Fresh{Current: true} }

// A fork over a limit of its tenant is refused before its workspace is copied.
func TestARefusedForkCopiesNothing(t *testing.T) {
	for name, limits := range map[string]quota.Limits{"sessions": {Sessions: 1}, "bytes": {Bytes: 101}, "runs": {Runs: 1, Sessions: 1}} {
		for _, run := range []bool{false, true} {
			s, log := newShelf(), memory.New()
			q := quota.New(quota.Tenants{}, oneSession{}, nil)
			g := newSpaceRig(t, log, s, engine.Options{Quota: q}, coder("a", "workspace_write_file", `{"path":"a","content":"1"}`))
			h, err := g.loop.Execute(t.Context(), engine.StartRequest{
				SessionID: "s", AgentType: "coder", Tenant: "red", Messages: []agentloop.Input{{Content: "go"}},
			})
			require.NoError(t, err)
			_, err = h.Result(t.Context())
			require.NoError(t, err)
			q.Set(quota.Tenants{Default: limits})
			req := timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", Run: run}
			if run {
				req.Messages = []agentloop.Input{{Content: "more"}}
			}
			_, err = g.loop.TimeTravel.Fork(t.Context(), req)
			var over *quota.Exceeded
			require.ErrorAs(t, err, &over, name)
			require.Zero(t, s.adopted.Load(), name)
			q.Set(quota.Tenants{Default: quota.Limits{Sessions: 2, Bytes: 1 << 20}})
			_, err = g.loop.TimeTravel.Fork(t.Context(), req)
			require.NoError(t, err, name)
			require.NotZero(t, s.adopted.Load(), name)
		}
	}
}
