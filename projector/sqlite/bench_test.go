package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/projector/readmodel"
)

const benchSessions = 20_000

// filled is a node whose log has many sessions of one turn each.
func filled(b *testing.B) *node {
	n := newNode(b, startServer(b, b.TempDir()), filepath.Join(b.TempDir(), "rows"))
	n.models.Close()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := w; i < benchSessions; i += 16 {
				id := fmt.Sprintf("s%05d", i)
				entries := append([]eventlog.Entry{created(id, "a", fmt.Sprint("user", i%100))}, worked(id, "r", "small", time.Unix(int64(i), 0), 7)...)
				_, err := n.log.Append(b.Context(), id, 0, entries)
				require.NoError(b, err)
			}
		})
	}
	wg.Wait()
	return n
}

// BenchmarkListing measures a page of the sessions of one user among 20,000: from the
// rows, and by folding every session.
func BenchmarkListing(b *testing.B) {
	n := filled(b)
	began := time.Now()
	n.open()
	filter := readmodel.SessionFilter{UserID: "user7"}
	list := func(b *testing.B) int {
		a, err := n.models.Sessions(b.Context(), filter)
		require.NoError(b, err)
		require.True(b, a.Fresh.Current)
		return a.Value.Total
	}
	list(b)
	b.Logf("%d sessions, %d records: rows made in %v", benchSessions, 7*benchSessions, time.Since(began))
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			require.Equal(b, benchSessions/100, list(b))
		}
	})
	b.Run("rows, asked what may be seen", func(b *testing.B) {
		filter = readmodel.SessionFilter{Visible: func(string) bool { return true }}
		for b.Loop() {
			require.Equal(b, benchSessions, list(b))
		}
	})
	b.Run("folds", func(b *testing.B) {
		for b.Loop() {
			total := 0
			for id, err := range n.log.Sessions(b.Context()) {
				require.NoError(b, err)
				t, err := n.states.Head(b.Context(), id)
				require.NoError(b, err)
				if t.UserID == "user7" {
					total++
				}
			}
			require.Equal(b, benchSessions/100, total)
		}
	})
}

// BenchmarkProjection measures how many records a second are added to the rows of 1,000
// sessions that stream concurrently.
func BenchmarkProjection(b *testing.B) {
	n := newNode(b, startServer(b, b.TempDir()), filepath.Join(b.TempDir(), "rows"))
	n.models.Close()
	stream(b, n, 1000, 100)
	for b.Loop() {
		require.NoError(b, removeFile(n.path))
		n.open()
		_, err := n.models.Sessions(context.Background(), readmodel.SessionFilter{})
		require.NoError(b, err)
		n.models.Close()
	}
	b.ReportMetric(float64(b.N)*1000*101/b.Elapsed().Seconds(), "records/s")
}

// stream appends records one by one to sessions, concurrently.
func stream(b *testing.B, n *node, sessions, records int) {
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			heads := map[int]uint64{}
			for i := range records + 1 {
				for s := w; s < sessions; s += 32 {
					id := fmt.Sprint("s", s)
					e := logtest.Text(id, "a few words ")
					if i == 0 {
						e = created(id, "a", "")
					}
					head, err := n.log.Append(b.Context(), id, heads[s], []eventlog.Entry{e})
					if err != nil {
						b.Error(err)
						return
					}
					heads[s] = head
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkAppend measures how much the read models slow down appends.
func BenchmarkAppend(b *testing.B) {
	for _, with := range []bool{false, true, false, true} {
		b.Run(fmt.Sprint("rows=", with), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				n := newNode(b, startServer(b, b.TempDir()), filepath.Join(b.TempDir(), "rows"))
				if !with {
					n.models.Close()
				}
				b.StartTimer()
				stream(b, n, 320, 100)
				b.StopTimer()
				n.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*320*101/b.Elapsed().Seconds(), "appends/s")
		})
	}
}
