package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Sessions implements readmodel.Models.
func (m *Models) Sessions(ctx context.Context, f readmodel.SessionFilter) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
	return listed[readmodel.Session](ctx, m, sessionListing(f), f.Visible, f.Paging)
}

// paused are the sessions whose streams are paused: most wait for somebody. They have their own
// index, since they are few among those that are active.
const paused = `doc ->> '$.streamStatus' = 'paused'`

func sessionListing(f readmodel.SessionFilter) listing {
	l := listing{table: "sessions", key: []string{"session"}, order: "session, root", doc: "doc"}
	if f.Sort == readmodel.ByUpdated {
		l.order = "doc ->> '$.updatedAt' DESC, session DESC, root DESC" // the index's order, backwards
	}
	unindexed := ""
	if f.Tenant != "" && f.ParentSessionID == "" && f.UserID == "" || f.ForkedFrom != "" {
		unindexed = "+" // use the tenant's index, or the forks': another one would scan the sessions of all tenants
	}
	switch {
	case f.StreamStatus != eventlog.StreamWaiting:
		l.where.equal("doc ->> '$.streamStatus'", string(f.StreamStatus))
	case f.Tenant+f.ForkedFrom+f.ParentSessionID+f.UserID != "":
		l.where.and("+" + paused) // theirs are fewer, and another tenant's are not read
	default:
		l.where.and(paused)
		unindexed = "+" // the others are many more
	}
	l.where.and(unindexed+"parent = ?", f.ParentSessionID)
	l.where.and("NOT (root GLOB ?)", eventlog.DurableLogID("*")) // those count for tenants and expire, and are no sessions
	l.where.equal("user", f.UserID)
	if f.ForkedFrom != "" {
		l.where.and("forked = ? AND forked <> ''", f.ForkedFrom) // the form that the index covers
	}
	l.where.tenant(f.Tenant)
	l.where.equal(unindexed+"agent", f.AgentType)
	l.where.equal(unindexed+"status", string(f.Status))
	if f.Tag != "" {
		l.where.and("EXISTS (SELECT 1 FROM tags t WHERE t.tag = ? AND t.root = sessions.root AND t.session = sessions.session)", f.Tag)
	}
	for name, value := range f.Metadata {
		l.where.and("EXISTS (SELECT 1 FROM metadata m WHERE m.name = ? AND m.value = ? AND m.root = sessions.root AND m.session = sessions.session)", name, value)
	}
	l.where.between("doc ->> '$.createdAt'", f.From, f.To)
	return l
}

// Runs implements readmodel.Models.
func (m *Models) Runs(ctx context.Context, f readmodel.RunFilter) (readmodel.Answer[readmodel.Page[readmodel.Run]], error) {
	return listed[readmodel.Run](ctx, m, runListing(f), f.Visible, f.Paging)
}

func runListing(f readmodel.RunFilter) listing {
	l := listing{table: "runs", key: []string{"session", "n"}, order: "started DESC, root, session, n DESC", doc: "doc"}
	if f.Tenant != "" {
		l.order = "+" + l.order // as for sessions
	}
	l.where.equal("session", f.SessionID)
	l.where.equal("user", f.UserID)
	l.where.tenant(f.Tenant)
	l.where.equal("agent", f.AgentType)
	l.where.equal("status", string(f.Status))
	l.where.between("started", f.From, f.To)
	return l
}

// Parked implements readmodel.Models.
func (m *Models) Parked(ctx context.Context, f readmodel.ParkedFilter) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
	l := listing{
		table: "parked", key: []string{"sequence", "stuck"}, order: "root, sequence, stuck",
		doc: `json_object('sessionId', root, 'sequence', sequence, 'type', type, 'reason', reason, 'stuck', json(iif(stuck, 'true', 'false')))`,
	}
	l.where.equal("root", f.SessionID)
	l.where.tenant(f.Tenant)
	if f.UserID != "" {
		l.where.and("EXISTS (SELECT 1 FROM sessions s WHERE s.root = parked.root AND s.session = parked.root AND s.user = ?)", f.UserID)
	}
	return listed[readmodel.Parked](ctx, m, l, f.Visible, f.Paging)
}

func listed[T any](ctx context.Context, m *Models, l listing, visible readmodel.Visible, p readmodel.Paging) (readmodel.Answer[readmodel.Page[T]], error) {
	p, err := p.Check()
	if err != nil {
		return readmodel.Answer[readmodel.Page[T]]{}, err
	}
	return ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (readmodel.Page[T], error) {
		return page[T](ctx, tx, l, visible, p)
	})
}

// Expiring implements readmodel.Models.
func (m *Models) Expiring(ctx context.Context, before time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		// Read all of them first: the caller may take its time with each.
		found, err := look(ctx, m, func(ctx context.Context, tx *sql.Tx) (roots []string, err error) {
			const text = "SELECT root FROM sessions WHERE expires < ? AND parent = '' ORDER BY expires, root"
			err = each(ctx, tx, text, []any{before.UnixMilli()}, func(row *sql.Rows) error {
				var root string
				err := row.Scan(&root)
				roots = append(roots, root)
				return err
			})
			return roots, err
		})
		for _, root := range found {
			if !yield(root, nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}
