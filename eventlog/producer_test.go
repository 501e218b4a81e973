package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func TestRuntimeOnly(t *testing.T) {
	var refused []string
	for _, typ := range eventlog.ChunkTypes() {
		if eventlog.RuntimeOnly(typ) {
			refused = append(refused, typ)
		}
	}
	require.Equal(t, []string{
		"checkpoint_created", "executor_superseded", "run_interrupted", "run_paused", "run_resumed", "step_committed",
		"step_discarded", "step_end", "step_start", "stream_resync", "suspension_marker",
	}, refused)
}

func TestKeyedWriter(t *testing.T) {
	// Logs hold this form: never change it.
	require.Equal(t, "key:sum:k-1", eventlog.KeyedWriter("k-1", "sum"))
	for _, key := range []string{"k", "a:b", ":", "key:x:y", "é 語"} {
		got, digest, ok := eventlog.ParseKeyedWriter(eventlog.KeyedWriter(key, "d"))
		require.True(t, ok)
		require.Equal(t, key, got)
		require.Equal(t, "d", digest)
	}
	for _, writer := range []string{"", "run-1", "key:", "key:x", "key::k", "key:x:", "Key:x:y"} {
		_, _, ok := eventlog.ParseKeyedWriter(writer)
		require.False(t, ok, writer)
	}
}
