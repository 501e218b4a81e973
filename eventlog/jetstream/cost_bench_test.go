//go:build linux

package jetstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// BenchmarkAppendCost measures the processor time of an append of one chunk by 64
// sessions at once, the server's part included, compared with a plain JetStream publish
// with the same comparison, sync and connection. The two alternate, and the ratio is of
// the medians: other load of the machine changes it little. One operation is one round of
// each.
func BenchmarkAppendCost(b *testing.B) {
	for _, mode := range []struct {
		name       string
		sync       time.Duration
		durability eventlog.Durability
		partitions int // of the log; the plain publishes have one stream
	}{
		{"interval=1s", time.Second, "interval=1s", 1}, {"fsync", 0, eventlog.DurabilityFsync, 1},
		{"interval=1s,partitions=4", time.Second, "interval=1s", 4}, {"fsync,partitions=4", 0, eventlog.DurabilityFsync, 4},
	} {
		b.Run(mode.name, func(b *testing.B) {
			const sessions, turn = 64, 4096
			srv, nc := embedtest.Start(b, embed.Options{SyncInterval: mode.sync, GroupSync: true})
			log := jetstreamtest.Open(b, nc, &jetstream.Options{Durability: mode.durability, Server: srv, Partitions: mode.partitions})
			js, err := natsjs.New(nc)
			require.NoError(b, err)
			_, err = js.CreateStream(b.Context(), natsjs.StreamConfig{Name: "RAW", Subjects: []string{"raw.*"}})
			require.NoError(b, err)
			const text = "Hello, this is a word or two of text. "
			var heads, rawHeads [sessions]uint64
			sides := []struct {
				append func(ctx context.Context, s int) error
				took   []time.Duration
			}{
				{append: func(ctx context.Context, s int) (err error) {
					session := fmt.Sprint("s", s)
					heads[s], err = log.Append(ctx, session, heads[s], []eventlog.Entry{logtest.Text(session, text)})
					return err
				}},
				{append: func(ctx context.Context, s int) error {
					session := fmt.Sprint("s", s)
					m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{
						Subject: "raw." + session, Data: logtest.Text(session, text).Payload,
						Header: nats.Header{natsjs.ExpectedLastSubjSeqHeader: {strconv.FormatUint(rawHeads[s], 10)}},
					})
					if err != nil {
						return err
					}
					var ack struct {
						Sequence uint64 `json:"seq"`
					}
					if err := json.Unmarshal(m.Data, &ack); err != nil {
						return err
					}
					rawHeads[s] = ack.Sequence
					return srv.Sync(ctx)
				}},
			}
			for b.Loop() {
				for i := range sides {
					began := processorTime(b)
					var wg sync.WaitGroup
					for s := range sessions {
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
							defer cancel()
							for range turn / sessions {
								if err := sides[i].append(ctx, s); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
					sides[i].took = append(sides[i].took, processorTime(b)-began)
				}
			}
			var median [2]time.Duration
			for i := range sides {
				slices.Sort(sides[i].took)
				median[i] = sides[i].took[len(sides[i].took)/2]
			}
			b.ReportMetric(float64(median[0].Nanoseconds())/1e3/turn, "cpu-µs/append")
			b.ReportMetric(float64(median[1].Nanoseconds())/1e3/turn, "raw-cpu-µs/append")
			b.ReportMetric(float64(median[0])/float64(median[1]), "ratio")
		})
	}
}

// processorTime is the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
