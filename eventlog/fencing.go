package eventlog

import (
	"context"

	"github.com/helixd/helixd/eventlog/fact"
)

// A session tree has one writer: the one whose claim is the last in its log. There is no lock
// and no lease. Each append names the record that it follows, and the log refuses it if another
// record is there. A writer that is refused reads what was appended meanwhile, and if a claim of
// another writer is among it, it is fenced: ErrSuperseded, for good.

// Claim makes w the tree's only writer. It fails with ErrSuperseded if
// another writer has claimed since Head.
func (w *Writer) Claim(ctx context.Context, claim *fact.RunClaimed) error {
	e, err := NewFact(claim.SessionID, claim, Labels{Run: claim.RunID})
	if err != nil {
		return err
	}
	return w.Append(ctx, e)
}

// catchUp observes the records that other writers appended after head. It refuses a fenced
// writer, with ErrSuperseded.
func (w *Writer) catchUp(ctx context.Context) (uint64, error) {
	for r, err := range After(ctx, w.log, w.session, w.head) {
		if err != nil {
			return 0, err
		}
		w.see(r)
		if r.Kind == KindFact && r.Type == (*fact.RunClaimed)(nil).Type() {
			return 0, ErrSuperseded
		}
	}
	return w.head, nil
}
