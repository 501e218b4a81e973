package sqlite

import (
	"context"
	"database/sql"

	"github.com/helixd/helixd/eventlog"
)

// waiting are the sessions that wait to be resumed. An index has them alone:
// they are counted again and again, and are few.
const waiting = `doc ->> '$.currentRun.status' IN
	('interrupted', 'suspended_client_tool', 'suspended_awaiting_children', 'suspended_step_partial')`

// Suspended tells how many sessions, sub-agents' too, wait for what: by the
// status of their last run. It does not wait for the rows to be current.
func (m *Models) Suspended(ctx context.Context) (map[eventlog.RunStatus]int, error) {
	return look(ctx, m, func(tx *sql.Tx) (map[eventlog.RunStatus]int, error) {
		n := map[eventlog.RunStatus]int{
			eventlog.RunStopped: 0, eventlog.RunClientTool: 0, eventlog.RunChildren: 0, eventlog.RunStepPartial: 0,
		}
		const text = "SELECT doc ->> '$.currentRun.status', count(*) FROM sessions INDEXED BY sessions_waiting WHERE " + waiting + " GROUP BY 1"
		return n, each(ctx, tx, text, nil, func(row *sql.Rows) error {
			var status eventlog.RunStatus
			var count int
			err := row.Scan(&status, &count)
			n[status] = count
			return err
		})
	})
}
