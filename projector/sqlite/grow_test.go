package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

// countingHeads counts how often the read models ask for the head of a session.
type countingHeads struct {
	*jetstream.Log
	times atomic.Int32
}

func (l *countingHeads) Head(ctx context.Context, session string) (uint64, error) {
	l.times.Add(1)
	return l.Log.Head(ctx, session)
}

// Rows are kept when the log gets more partitions, whether or not the old ones were
// purged, and records of the new ones are added.
func TestRowsStayWhenTheLogGrows(t *testing.T) {
	t.Parallel()
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "rows")
	want := []string{}
	n := &node{t: t, path: path}
	t.Cleanup(func() { n.stop() })
	for round, partitions := range []int{2, 5, 0, 8} {
		if n.log != nil {
			n.stop()
		}
		srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Second, GroupSync: true}) // growth waits for no other process
		require.NoError(t, err)
		t.Cleanup(srv.Stop)
		n.nc, err = srv.Connect()
		require.NoError(t, err)
		n.log, err = jetstream.Open(t.Context(), n.nc, &jetstream.Options{Durability: "interval=1s", Partitions: partitions, Grow: true, Server: srv})
		require.NoError(t, err)
		n.states = snapshot.New(n.log, nil)
		log := &countingHeads{Log: n.log}
		n.models = Open(log, n.states, Options{Path: n.path, Patience: patience})
		for i := range 9 {
			id := fmt.Sprintf("session %d %d", round, i)
			want = append(want, id)
			n.append(id, created(id, "a", ""), said(id, "remarkable"))
		}
		for _, id := range want[:9] {
			n.append(id, said(id, "remarkable"))
		}
		require.Equal(t, want, n.found())
		require.Equal(t, len(want)+9*(round+1), n.hits("remarkable"))
		if round > 0 {
			require.Zero(t, log.times.Load(), "sessions are not compared one by one")
		}
		n.models.Close()
		file, err := sql.Open("sqlite", "file:"+path)
		require.NoError(t, err)
		var marks int
		require.NoError(t, file.QueryRowContext(t.Context(), "SELECT count(*) FROM meta WHERE key LIKE 'mark%'").Scan(&marks))
		require.Equal(t, round, marks, "the file was made again")
		_, err = file.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO meta (key, value) VALUES ('mark%d', '')", round))
		require.NoError(t, err)
		require.NoError(t, file.Close())
		n.models.Close()
		n.log.Close()
		n.nc.Close()
		srv.Stop()
	}
}
