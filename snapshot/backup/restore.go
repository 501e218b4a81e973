package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Target is the deployment into which a backup is restored.
type Target struct {
	Sessions Sessions
	Folds    snapshot.Folds
	// Work is called for a session tree that may have work, with the type of its root's agent.
	Work func(agentType, session string) error
	// Item is called for what was stored beside the log, after all sessions; nil: it is not
	// restored.
	Item func(of string, item eventlog.CopiedItem) error
}

// Sessions restores sessions, as eventlog/jetstream's Restorer does.
type Sessions interface {
	Session(ctx context.Context, session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) (int, error)
}

// Restore restores a backup into the target that open returns for its header. After an
// error the target must not be used. Errors: as [Read], and the target's.
func Restore(ctx context.Context, in io.Reader, open func(Header) (Target, error)) (Summary, error) {
	r := &restoring{ctx: ctx}
	_, done, err := Read(ctx, in, Visitor{
		Begin: func(h Header) (err error) {
			r.to, err = open(h)
			return err
		},
		Fold: r.fold, Session: r.session, Item: func(of string, item eventlog.CopiedItem) error {
			if r.to.Item == nil {
				return nil
			}
			return r.to.Item(of, item)
		},
	})
	return done, err
}

type restoring struct {
	ctx  context.Context
	to   Target
	tree *projector.Tree // from the next session's last saved fold
}

func (r *restoring) fold(session string, s snapshot.Saved) error {
	t := new(projector.Tree)
	if err := json.Unmarshal(s.State, t); err == nil && t.Head == s.Sequence {
		r.tree = t
	}
	if _, err := r.to.Folds.Save(r.ctx, session, s); err != nil {
		return fmt.Errorf("session %q: %w", session, err)
	}
	return nil
}

// session writes a session's records and checks whether it has work: a run may have been
// under way.
func (r *restoring) session(session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) error {
	t := r.tree
	r.tree = nil
	if t == nil && floor == 0 {
		t = new(projector.Tree)
	}
	_, err := r.to.Sessions.Session(r.ctx, session, floor, func(yield func(eventlog.Copied, error) bool) {
		for c, err := range records {
			if err == nil && t != nil && c.Sequence > t.Head {
				projector.Apply(t, c.Record)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	if err != nil || t == nil || t.AgentType == "" {
		return err
	}
	for _, s := range t.Sessions() {
		if s.Turn != nil {
			return r.to.Work(t.AgentType, session)
		}
	}
	return nil
}
