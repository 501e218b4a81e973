package agentloop

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// CodePoisoned is the code of a run that was taken up MaxBarrenClaims times in
// a row, by as many processes, and recorded nothing: it is what ends them.
const CodePoisoned = "agent_run_poisoned"

// endPoison has the open runs of a tree end as failed that kills whoever takes
// it up.
func (r *runner) endPoison(ctx context.Context) error {
	r.mu.RLock()
	barren := r.tree.Claim.Barren
	var facts []fact
	for _, s := range r.tree.Sessions() {
		if barren <= MaxBarrenClaims {
			break
		}
		if s.Turn == nil || aborting(s) || s.Child != nil && r.tree.Turn != nil { // the root's end is its children's
			continue
		}
		facts = append(facts, about(s.SessionID, []fact{{run: s.Turn.RunID, f: &eventlog.InterruptRequested{
			RunID: s.Turn.RunID, Kind: eventlog.StopAbort, Code: CodePoisoned, ByParent: s.Child != nil,
			Reason:   fmt.Sprintf("it was taken up %d times in a row and recorded nothing", MaxBarrenClaims),
			FactBase: r.l.factBase(s.SessionID),
		}}})...)
	}
	r.mu.RUnlock()
	if len(facts) == 0 {
		return nil
	}
	entries, err := entriesOf(r.root, facts)
	if err != nil {
		return err
	}
	r.l.opts.Logger.Error("run is given up", "session", r.root, "code", CodePoisoned, "claims", barren)
	return r.w.Append(ctx, entries...)
}
