package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// A tenant's listings read only its own rows: the number of other tenants' rows neither
// slows them down nor shows in the time that they take.
func TestATenantsListingsReadItsOwnRows(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "rows.db"))
	require.NoError(t, err)
	defer f.close()
	for name, l := range map[string]listing{
		"sessions": sessionListing(readmodel.SessionFilter{Tenant: "red"}),
		"updated":  sessionListing(readmodel.SessionFilter{Tenant: "red", Sort: readmodel.ByUpdated}),
		"paused":   sessionListing(readmodel.SessionFilter{Tenant: "red", Status: "active", StreamStatus: eventlog.StreamWaiting, Sort: readmodel.ByUpdated}),
		"status":   sessionListing(readmodel.SessionFilter{Tenant: "red", AgentType: "a", Status: "completed", From: 1}),
		"runs":     runListing(readmodel.RunFilter{Tenant: "red"}),
	} {
		for _, text := range []string{"SELECT count(*) FROM " + l.table + l.where.String(), "SELECT " + l.doc + " FROM " + l.table + l.where.String() + " ORDER BY " + l.order + " LIMIT 50"} {
			all := planOf(t, f, text, l.where.args)
			require.Contains(t, all, "trees_tenant (tenant=?)", name)
			require.Contains(t, all, "SEARCH "+l.table+" USING PRIMARY KEY (root=?)", name)
			require.NotContains(t, all, "SCAN", name)
		}
	}
}

// The forks of a session are found without a look at other sessions.
func TestAListingOfForksReadsThemOnly(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "rows.db"))
	require.NoError(t, err)
	defer f.close()
	for _, filter := range []readmodel.SessionFilter{{ForkedFrom: "s"}, {ForkedFrom: "s", AgentType: "a", Status: "completed"}} {
		l := sessionListing(filter)
		plan := planOf(t, f, "SELECT "+l.doc+" FROM "+l.table+l.where.String()+" ORDER BY "+l.order+" LIMIT 50", l.where.args)
		require.Contains(t, plan, "sessions_forked (forked=?)")
		require.NotContains(t, plan, "SCAN")
		require.NotContains(t, plan, "TEMP B-TREE", "they are in order")
	}
}

// Sessions that wait for somebody are found without a look at others.
func TestAListingOfPausedSessionsReadsThemOnly(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "rows.db"))
	require.NoError(t, err)
	defer f.close()
	for _, filter := range []readmodel.SessionFilter{{}, {Status: "active", AgentType: "a", Sort: readmodel.ByUpdated}} {
		filter.StreamStatus = eventlog.StreamWaiting
		l := sessionListing(filter)
		for _, text := range []string{"SELECT count(*) FROM sessions" + l.where.String(), "SELECT " + l.doc + " FROM sessions" + l.where.String() + " ORDER BY " + l.order + " LIMIT 50"} {
			plan := planOf(t, f, text, l.where.args)
			require.Contains(t, plan, "INDEX sessions_paused (<expr>=?)")
			require.NotContains(t, plan, "SCAN")
		}
	}
	l := sessionListing(readmodel.SessionFilter{StreamStatus: eventlog.StreamWaiting, Tenant: "red", UserID: "u"})
	plan := planOf(t, f, "SELECT count(*) FROM sessions"+l.where.String(), l.where.args)
	require.NotContains(t, plan, "sessions_paused", "it has other tenants' sessions")
}

// Sessions that are active, and do not wait, are counted without a look at their documents: the debugger
// asks every two seconds.
func TestACountOfActiveSessionsReadsNoDocuments(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "rows.db"))
	require.NoError(t, err)
	defer f.close()
	l := sessionListing(readmodel.SessionFilter{Status: "active", StreamStatus: eventlog.StreamActive, Sort: readmodel.ByUpdated})
	plan := planOf(t, f, "SELECT count(*) FROM sessions"+l.where.String(), l.where.args)
	require.Contains(t, plan, "COVERING INDEX sessions_status")
	l = sessionListing(readmodel.SessionFilter{Status: "active", StreamStatus: eventlog.StreamActive})
	plan = planOf(t, f, "SELECT "+l.doc+" FROM sessions"+l.where.String()+" ORDER BY "+l.order+" LIMIT 50", l.where.args)
	require.Contains(t, plan, "INDEX sessions_status")
	require.NotContains(t, plan, "TEMP B-TREE", "they are in order")
}

// planOf returns the steps in which a query is answered.
func planOf(t *testing.T, f *file, text string, args []any) string {
	t.Helper()
	rows, err := f.read.Query("EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err)
	defer rows.Close()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	require.NoError(t, rows.Err())
	return strings.Join(plan, "\n")
}
