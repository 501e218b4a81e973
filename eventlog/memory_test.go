package eventlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// Each scope has a log of its own, which nobody outside can name, and from which
// it is known again.
func TestScopesHaveLogs(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []eventlog.MemoryScope{
		{Kind: eventlog.MemoryOfUser, ID: "u"}, {Kind: eventlog.MemoryOfAgent, ID: "u"}, {Kind: eventlog.MemoryOfUser, ID: "u/v"},
		{Kind: eventlog.MemoryOfSession, ID: strings.Repeat("s", 256)}, {Kind: eventlog.MemoryOfSession, ID: strings.Repeat("s", 255)},
	} {
		log := s.LogID()
		require.NoError(t, eventlog.ValidateSessionID(log))
		require.True(t, eventlog.IsMemoryLog(log))
		var bad *eventlog.ValidationError
		require.ErrorAs(t, eventlog.ValidateClientSessionID(log), &bad)
		require.False(t, seen[log])
		seen[log] = true
		got, ok := eventlog.MemoryScopeOf(log)
		require.True(t, ok)
		require.Equal(t, log, got.LogID())
		if len(s.ID) < 200 {
			require.Equal(t, s, got)
		}
	}
	for _, id := range []string{"", "s", "~memory", "memory/user/u", strings.Repeat("s", 300)} {
		_, ok := eventlog.MemoryScopeOf(id)
		require.False(t, ok)
		require.Equal(t, eventlog.ValidateSessionID(id), eventlog.ValidateClientSessionID(id))
	}
}
