package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestADeletionWhoseTimeRunsOut: if another node deletes the message first and the context ends
// before this node has seen that it is gone, the error is the context's: the caller continues later.
func TestADeletionWhoseTimeRunsOut(t *testing.T) {
	nc := storetest.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	another := true
	hook := func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "delete" && another {
			another = false
			require.NoError(t, do(ctx), "the other node")
			defer cancel()
		}
		return do(ctx)
	}
	conn, err := link.New(link.WithTuning(t.Context(), link.Tuning{Hook: hook}), nc, link.Options{Partitions: 1})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	l, err := Open(t.Context(), conn)
	require.NoError(t, err)
	storetest.PublishForeign(t, nc, layout.LogSubject("s", 0), nil, []byte("x"))
	seq, err := l.LastOf(t.Context(), layout.LogStream(0))
	require.NoError(t, err)
	err = l.Remove(ctx, layout.LogStream(0), seq)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, l.Remove(t.Context(), layout.LogStream(0), seq), "it is gone")
}
