// Package admission charges tenants for what requests append.
package admission

import (
	"context"

	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Admission is what a request's tenant was charged for, until it is known what
// was appended.
type Admission struct {
	Quota *quota.Quota // nil: nothing is limited
	held  *quota.Admission
}

// Admit charges the session's tenant for facts that begin a session or a run. All
// other facts pass, except what a rollback restores: a stop of a run, or an answer
// to its calls, must not be refused. Errors: as quota.Quota.Admit.
func (a *Admission) Admit(ctx context.Context, session string, t *projector.Tree, facts []record.Draft) error {
	a.Done(nil)
	var want quota.Want
	tenant := ""
	if t != nil {
		tenant = t.Tenant
	}
	for _, x := range facts {
		switch f := x.Fact.(type) {
		case *fact.SessionCreated:
			if t == nil && x.Agent == "" {
				tenant, want.Session = f.Tenant, true
			}
		case *fact.SessionForked:
			begun, err := record.FoldFork(facts)
			if err != nil {
				return err
			}
			tenant, want.Session = begun.Tenant, true
		case *fact.RunRequested:
			want.Run = want.Run || x.Agent == "" && (t == nil || !t.Running())
		}
	}
	if !want.Session && !want.Run || !a.Quota.Limited(ctx, tenant) {
		return nil
	}
	n, err := size(session, facts)
	if err != nil {
		return err
	}
	want.Bytes = n
	a.held, err = a.Quota.Admit(ctx, tenant, session, want)
	return err
}

// AdmitStored charges the tenant of a session that exists for facts that begin no run. Errors:
// as quota.Quota.Admit.
func (a *Admission) AdmitStored(ctx context.Context, session string, t *projector.Tree, facts []record.Draft) error {
	a.Done(nil)
	if !a.Quota.Limited(ctx, t.Tenant) {
		return nil
	}
	n, err := size(session, facts)
	if err != nil {
		return err
	}
	return a.AdmitBytes(ctx, session, t.Tenant, int(n))
}

// size is how many bytes facts take in the log.
func size(session string, facts []record.Draft) (n int64, err error) {
	entries, err := record.Entries(session, facts)
	for _, e := range entries {
		n += int64(len(e.Payload))
	}
	return n, err
}

// AdmitBytes charges a tenant for what is stored in a session that it has, and begins
// no run. Errors: as quota.Quota.Admit.
func (a *Admission) AdmitBytes(ctx context.Context, session, tenant string, n int) (err error) {
	a.Done(nil)
	a.held, err = a.Quota.Admit(ctx, tenant, session, quota.Want{Bytes: int64(n)})
	return err
}

// Done reports the outcome of the request: the state after what was appended,
// nil if nothing was.
func (a *Admission) Done(t *projector.Tree) {
	a.held.Done(t)
	a.held = nil
}
