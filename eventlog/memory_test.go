package eventlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// Each scope has its own log, which nobody outside can name, and from which
// it is known again.
func TestScopesHaveLogs(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []eventlog.MemoryScope{
		{Kind: eventlog.MemoryOfUser, ID: "u"}, {Kind: eventlog.MemoryOfAgent, ID: "u"}, {Kind: eventlog.MemoryOfUser, ID: "u/v"},
		{Kind: eventlog.MemoryOfSession, ID: strings.Repeat("s", 256)}, {Kind: eventlog.MemoryOfSession, ID: strings.Repeat("s", 255)},
		{Kind: eventlog.MemoryOfUser, ID: "u", Tenant: "red"}, {Kind: eventlog.MemoryOfUser, ID: "u", Tenant: "blue"},
		{Kind: eventlog.MemoryOfUser, ID: "v", Tenant: "u"}, {Kind: eventlog.MemoryOfUser, ID: "b/u", Tenant: "a"},
		{Kind: eventlog.MemoryOfUser, ID: "u", Tenant: "a/b"}, {Kind: eventlog.MemoryOfAgent, ID: "u", Tenant: "a@%2Fb"},
		{Kind: eventlog.MemoryOfUser, ID: "long", Tenant: strings.Repeat("t", 256)}, {Kind: eventlog.MemoryOfUser, ID: "long", Tenant: strings.Repeat("t", 255)},
	} {
		require.NoError(t, s.Validate())
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
		if len(s.ID)+len(s.Tenant) < 200 {
			require.Equal(t, s, got)
		}
	}
	for _, tenant := range []string{"a\x00b", strings.Repeat("t", 257), "#" + strings.Repeat("0", 64)} {
		require.Error(t, eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u", Tenant: tenant}.Validate())
	}
	require.Error(t, eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "s", Tenant: "red"}.Validate())
	for _, id := range []string{"", "s", "~memory", "memory/user/u", strings.Repeat("s", 300)} {
		_, ok := eventlog.MemoryScopeOf(id)
		require.False(t, ok)
		require.Equal(t, eventlog.ValidateSessionID(id), eventlog.ValidateClientSessionID(id))
	}
}
