package layout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func TestToken(t *testing.T) {
	for id, want := range map[string]string{
		"session-1_A":       "session-1_A",
		"a.b":               "a%2Eb",
		"*":                 "%2A",
		">":                 "%3E",
		"a b":               "a%20b",
		"100%":              "100%25",
		"%2E":               "%252E",
		"$JS.API":           "%24JS%2EAPI",
		"é":                 "%C3%A9",
		"helix.log.0.s":     "helix%2Elog%2E0%2Es",
		"\x00\r\n\xff":      "%00%0D%0A%FF",
		"../../etc":         "%2E%2E%2F%2E%2E%2Fetc",
		"Ünïcode\u2028line": "%C3%9Cn%C3%AFcode%E2%80%A8line",
	} {
		require.Equal(t, want, Token(id))
		require.Equal(t, "helix.live."+want, LiveSubject(id))
		require.Equal(t, "helix.log.3."+want, LogSubject(id, 3))
		back, ok := SessionID(want)
		require.Equal(t, eventlog.ValidateSessionID(id) == nil, ok)
		require.Equal(t, id, back)
	}
	for _, token := range []string{"%zz", "%41", "%00", "a b", ""} {
		_, ok := SessionID(token)
		require.False(t, ok, token)
	}
}

// Stored records are found by it, so these values never change.
func TestPartitionIsFrozen(t *testing.T) {
	for id, want := range map[string][3]int{
		"s":                          {0, 2, 2},
		"session-1":                  {0, 13, 13},
		"é":                          {0, 1, 1},
		"a.b":                        {0, 12, 12},
		"01JD0000000000000000000000": {0, 12, 60},
	} {
		require.Equal(t, want, [3]int{Partition(id, 1), Partition(id, 16), Partition(id, 64)}, id)
	}
}

func FuzzToken(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "*", ">", "%2A", "é", "\x00\xff", "a b"} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		token := Token(a)
		require.False(t, strings.ContainsAny(token, ".*> \t\r\n\x00$"), token)
		for _, r := range token {
			require.True(t, '!' <= r && r <= '~', token)
		}
		back, ok := SessionID(token)
		require.Equal(t, eventlog.ValidateSessionID(a) == nil, ok)
		require.Equal(t, a, back)
		require.Equal(t, a == b, token == Token(b), "injective")
		for _, n := range []int{1, 16, MaxPartitions} {
			p := Partition(a, n)
			require.True(t, 0 <= p && p < n)
		}
	})
}
