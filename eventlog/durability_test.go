package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// Nothing that is not known is called durable.
func TestDurabilityInWords(t *testing.T) {
	for d, want := range map[eventlog.Durability]string{
		eventlog.DurabilityFsync:   "acknowledged appends survive a power loss",
		"interval=1s":              "acknowledged appends survive a killed process; a power loss undoes at most those of the last 1s",
		"replicated×3":             "acknowledged appends survive the loss of fewer than half of 3 servers",
		eventlog.DurabilityMemory:  "acknowledged appends are lost when the server ends",
		eventlog.DurabilityUnknown: "acknowledged appends survive a killed client; nothing more is known",
		"":                         "acknowledged appends survive a killed client; nothing more is known",
		"FSYNC":                    "acknowledged appends survive a killed client; nothing more is known",
	} {
		require.Equal(t, want, d.Survives(), string(d))
	}
}
