package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// If a reader keeps the write-ahead log from being emptied, truncate returns false, and
// the writer's busy timeout is unchanged.
func TestTruncateWaitsForNobody(t *testing.T) {
	t.Parallel()
	f, err := openFile(filepath.Join(t.TempDir(), "rows"))
	require.NoError(t, err)
	defer f.close()
	tx, err := f.read.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM meta").Scan(&n))
	_, err = f.conn.ExecContext(t.Context(), "INSERT INTO meta (key, value) VALUES ('a', 'b')")
	require.NoError(t, err)
	done, err := f.truncate(t.Context())
	require.NoError(t, err)
	require.False(t, done)
	require.NoError(t, tx.Rollback())
	done, err = f.truncate(t.Context())
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, f.conn.QueryRowContext(t.Context(), "PRAGMA busy_timeout").Scan(&n))
	require.Equal(t, busyTimeout, n)
}

// If a reader can't open the file, that says nothing about the file.
func TestAReaderThatCannotOpen(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "no folder", "rows"), true))
	require.NoError(t, err)
	defer db.Close()
	err = db.PingContext(t.Context())
	require.ErrorIs(t, classed(err), errDiscard)
	require.Error(t, metByReader(err))
	require.NotErrorIs(t, metByReader(err), errDiscard)
}
