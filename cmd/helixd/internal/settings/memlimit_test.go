package settings

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMemoryLimitIsWhatThereIs(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "")
	limit, from := MemoryLimit()
	require.Contains(t, []string{"the cgroup", "the machine"}, from)
	require.Positive(t, limit)
	LimitMemory()
	require.Equal(t, limit, debug.SetMemoryLimit(-1))

	t.Setenv("GOMEMLIMIT", "1GiB") // the runtime has read it at its start
	debug.SetMemoryLimit(1 << 30)
	limit, from = MemoryLimit()
	require.Equal(t, int64(1<<30), limit)
	require.Equal(t, "GOMEMLIMIT", from)
}
