package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector/readmodel"
)

// BenchmarkListingOfATenant lists the newest sessions of one tenant of 200 with 100
// sessions each.
func BenchmarkListingOfATenant(b *testing.B) {
	f, err := openFile(filepath.Join(b.TempDir(), "rows.db"))
	require.NoError(b, err)
	defer f.close()
	ctx := context.Background()
	tx, err := f.conn.BeginTx(ctx, nil)
	require.NoError(b, err)
	for i := range 20_000 {
		root := fmt.Sprintf("session-%d", i)
		_, err := tx.Exec("INSERT INTO trees (root, head, tenant, bytes) VALUES (?, 1, ?, 1)", root, fmt.Sprint("tenant-", i%200))
		require.NoError(b, err)
		doc := fmt.Sprintf(`{"sessionId":%q,"createdAt":%d,"updatedAt":%d}`, root, i, i)
		_, err = tx.Exec("INSERT INTO sessions (root, session, parent, agent, user, status, doc) VALUES (?, ?, '', 'a', 'u', 'completed', ?)", root, root, doc)
		require.NoError(b, err)
	}
	require.NoError(b, tx.Commit())
	for _, sorted := range []readmodel.SessionSort{"", readmodel.ByUpdated} {
		b.Run("sort="+string(sorted), func(b *testing.B) {
			for b.Loop() {
				l := sessionListing(readmodel.SessionFilter{Tenant: "tenant-7", Sort: sorted})
				tx, err := f.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
				require.NoError(b, err)
				found, err := page[readmodel.Session](ctx, tx, l, nil, readmodel.Paging{Limit: 50})
				require.NoError(b, err)
				require.Equal(b, 100, found.Total)
				require.NoError(b, tx.Rollback())
			}
		})
	}
}
