package engine

import (
	"context"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// admission is what a request's tenant was charged for, until it is known what
// was appended.
type admission struct {
	l    *Loop
	held *quota.Admission
}

// admit charges the session's tenant for facts that begin a session or a run. All
// else is let through, but for what a rollback restores: what stops a run, or answers
// its calls, must not be refused. Errors: as quota.Quota.Admit.
func (a *admission) admit(ctx context.Context, session string, t *projector.Tree, facts []fact) error {
	a.done(nil)
	var want quota.Want
	tenant := ""
	if t != nil {
		tenant = t.Tenant
	}
	for _, x := range facts {
		switch f := x.f.(type) {
		case *eventlog.SessionCreated:
			if t == nil && x.agent == "" {
				tenant, want.Session = f.Tenant, true
			}
		case *eventlog.SessionForked:
			begun, err := foldFork(facts)
			if err != nil {
				return err
			}
			tenant, want.Session = begun.Tenant, true
		case *eventlog.RunRequested:
			want.Run = want.Run || x.agent == "" && (t == nil || !t.Running())
		}
	}
	if !want.Session && !want.Run || !a.l.opts.Quota.Limited(ctx, tenant) {
		return nil
	}
	entries, err := entriesOf(session, facts)
	if err != nil {
		return err
	}
	for _, e := range entries {
		want.Bytes += int64(len(e.Payload))
	}
	a.held, err = a.l.opts.Quota.Admit(ctx, tenant, session, want)
	return err
}

// admitBytes charges a tenant for what is stored in a session that it has, and begins
// no run. Errors: as quota.Quota.Admit.
func (a *admission) admitBytes(ctx context.Context, session, tenant string, n int) (err error) {
	a.done(nil)
	a.held, err = a.l.opts.Quota.Admit(ctx, tenant, session, quota.Want{Bytes: int64(n)})
	return err
}

// done tells what has become of the request: the state behind what was appended,
// nil if nothing was.
func (a *admission) done(t *projector.Tree) {
	a.held.Done(t)
	a.held = nil
}
