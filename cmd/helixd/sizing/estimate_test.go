package sizing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var usual = Load{Sessions: 100_000, Tokens: 1000, Rate: 50, Peak: 4, Followers: 1, Days: 30, LogDays: 3, Nodes: 1, Replicas: 1}

func of(t *testing.T, change func(*Load)) Estimate {
	t.Helper()
	l := usual
	change(&l)
	e, err := Of(l)
	require.NoError(t, err)
	return e
}

func TestEstimate(t *testing.T) {
	e := of(t, func(*Load) {})
	require.InDelta(t, 100_000*1015, e.Records, 1)
	require.InDelta(t, 100_000*1015*3*233, e.Log, 1)
	require.InDelta(t, 100_000*1015*30*15.7, e.Segments, 1)
	require.InDelta(t, 92.6, e.Runs, 0.1, "a day has 86,400 s, and a session takes 20")
	require.InDelta(t, 4630, e.TokensPerSecond, 1)
	require.InDelta(t, e.Runs, e.Clients, 0.01)
	require.Empty(t, e.Limits)

	three := of(t, func(l *Load) { l.Nodes, l.Replicas = 3, 3 })
	require.Greater(t, three.Node.Disk, e.Node.Disk, "each node has the whole log, with larger records")
	require.Less(t, three.Node.Memory, e.Node.Memory)
	require.Less(t, three.Node.Cores, e.Node.Cores)
	five := of(t, func(l *Load) { l.Nodes, l.Replicas = 5, 3 })
	require.Less(t, five.Node.Disk, three.Node.Disk)

	// More of anything needs more of what it takes, and never less of anything.
	for name, more := range map[string]func(*Load){
		"sessions": func(l *Load) { l.Sessions *= 2 }, "tokens": func(l *Load) { l.Tokens *= 2 }, "peak": func(l *Load) { l.Peak *= 2 },
		"followers": func(l *Load) { l.Followers *= 2 }, "idle": func(l *Load) { l.Idle = 1e5 }, "days": func(l *Load) { l.Days *= 2 },
		"log days": func(l *Load) { l.LogDays *= 2 },
	} {
		m := of(t, more)
		require.GreaterOrEqual(t, m.Node.Disk, e.Node.Disk, name)
		require.GreaterOrEqual(t, m.Node.Memory, e.Node.Memory, name)
		require.GreaterOrEqual(t, m.Node.Cores, e.Node.Cores, name)
		require.NotEqual(t, m.Node, e.Node, name)
	}
	nothing := of(t, func(l *Load) { l.Sessions = 0 })
	require.Equal(t, Node{Disk: 1 << 30, Memory: (nodeMemory.Value + cacheMemory.Value) * (1 << 20), Cores: nodeCPU.Value}, nothing.Node)

	require.Len(t, of(t, func(l *Load) { l.Sessions, l.Idle = 1e6, 4e4 }).Limits, 2)
}

func TestEstimateRefuses(t *testing.T) {
	for name, change := range map[string]func(*Load){
		"negative": func(l *Load) { l.Sessions = -1 }, "no rate": func(l *Load) { l.Rate = 0 }, "a peak below the mean": func(l *Load) { l.Peak = 0.5 },
		"no node": func(l *Load) { l.Nodes = 0 }, "two replicas": func(l *Load) { l.Nodes, l.Replicas = 3, 2 },
		"more replicas than nodes": func(l *Load) { l.Replicas = 3 }, "the log longer": func(l *Load) { l.LogDays = 31 },
	} {
		l := usual
		change(&l)
		_, err := Of(l)
		require.Error(t, err, name)
	}
}

// Every constant has a name, a unit, and the command that measures it.
func TestConstants(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Constants() {
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		require.Positive(t, c.Value, c.Name)
		require.NotEmpty(t, c.Unit, c.Name)
		require.NotEmpty(t, c.What, c.Name)
		require.NotEmpty(t, c.Origin, c.Name)
	}
}
