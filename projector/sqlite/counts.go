package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// TenantUse returns a tenant's usage, and how far the rows are for those of the roots
// that they have. It does not wait for the rows to be current. Errors:
// readmodel.ErrUnavailable; the context's error.
func (m *Models) TenantUse(ctx context.Context, tenant string, roots []string) (readmodel.TenantUse, error) {
	return tally(ctx, m, func(ctx context.Context, tx *sql.Tx) (use readmodel.TenantUse, err error) {
		err = tx.QueryRowContext(ctx, "SELECT sessions, runs, bytes FROM tenants WHERE tenant = ?", tenant).Scan(&use.Sessions, &use.Runs, &use.Bytes)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || len(roots) == 0 {
			return use, ignoreNoRows(err)
		}
		list, err := json.Marshal(roots)
		if err != nil {
			return use, err
		}
		use.Trees = make(map[string]readmodel.TreeUse, len(roots))
		const text = "SELECT root, head, bytes, running FROM trees WHERE root IN (SELECT value FROM json_each(?))"
		err = each(ctx, tx, text, []any{string(list)}, func(row *sql.Rows) error {
			var root string
			var head int64
			var t readmodel.TreeUse
			err := row.Scan(&root, &head, &t.Bytes, &t.Running)
			t.Head = uint64(head)
			use.Trees[root] = t
			return err
		})
		return use, err
	})
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// waiting are the sessions that wait to be resumed. They have their own index, since they
// are few and counted often.
const waiting = `doc ->> '$.currentRun.status' IN
	('interrupted', 'suspended_client_tool', 'suspended_awaiting_children', 'suspended_step_partial')`

// Suspended counts the sessions that wait, sub-agents' too, by the status of their last
// run. It does not wait for the rows to be current.
func (m *Models) Suspended(ctx context.Context) (map[fact.RunStatus]int, error) {
	return look(ctx, m, func(ctx context.Context, tx *sql.Tx) (map[fact.RunStatus]int, error) {
		n := map[fact.RunStatus]int{
			fact.RunStopped: 0, fact.RunClientTool: 0, fact.RunChildren: 0, fact.RunStepPartial: 0,
		}
		const text = "SELECT doc ->> '$.currentRun.status', count(*) FROM sessions INDEXED BY sessions_waiting WHERE " + waiting + " GROUP BY 1"
		return n, each(ctx, tx, text, nil, func(row *sql.Rows) error {
			var status fact.RunStatus
			var count int
			err := row.Scan(&status, &count)
			n[status] = count
			return err
		})
	})
}
