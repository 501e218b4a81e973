package live

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// On three replicas a follower receives a last record whose live message was lost while
// the stream changed its leader.
func TestALostLastRecordIsFoundAfterALeaderChange(t *testing.T) {
	t.Parallel()
	logs := storetest.StartCluster(t, 3, func(_ *embed.Server, nc *nats.Conn) (*followed, error) {
		l, err := maintenance.Open(t.Context(), nc, link.Options{Partitions: 1, Replicas: 3})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { l.Close() })
		f := &followed{l, New(l.Store)}
		f.live.Start()
		return f, nil
	})
	head, err := eventlog.AppendOnce(t.Context(), logs[0], "s", "heard", 0, storetest.TextEntries("x", 1)) // a new cluster may change its leader, too
	require.NoError(t, err)
	heard := deafened(t, logs[1], head-1)
	_, err = logs[2].Conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+layout.LogStream(0), nil, 10*time.Second)
	require.NoError(t, err)
	head, err = eventlog.AppendOnce(t.Context(), logs[0], "s", "lost", head, storetest.TextEntries("y", 1))
	require.NoError(t, err)
	began := time.Now()
	require.Equal(t, head, (<-heard).Sequence)
	t.Logf("heard after %v", time.Since(began))
}
