package client_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/client"
)

// All sessions are listed once, whatever comes and goes while pages are read.
func TestAllSessions(t *testing.T) {
	s := newServerOn(t, memory.New())
	c, ctx := s.client(), ctxOf(t)
	id := func(i int) string { return fmt.Sprintf("s%04d", i) }
	var want []string
	for i := range 450 {
		s.written(id(i), 1)
		want = append(want, id(i))
	}
	list := func(at map[int]func()) (got []string) {
		t.Helper()
		for summary, err := range c.AllSessions(ctx, client.SessionFilter{}) {
			require.NoError(t, err)
			got = append(got, summary.SessionID)
			if f := at[len(got)]; f != nil {
				f()
			}
		}
		return got
	}
	require.Equal(t, want, list(nil))
	require.Equal(t, 3, s.got("/sessions"))

	s.got("")
	got := list(map[int]func(){
		150: func() { // nothing that was read moves what was not
			for i := range 120 {
				_, err := c.Erase(ctx, id(i))
				require.NoError(t, err)
			}
		},
		300: func() {
			for i := range 50 {
				s.written(fmt.Sprint("a", i), 1)
			}
		},
	})
	require.Equal(t, want, got)

	got = list(map[int]func(){1: func() { // there is less than one page now
		for i := 120; i < 400; i++ {
			_, err := c.Erase(ctx, id(i))
			require.NoError(t, err)
		}
	}})
	require.Equal(t, want[400:], got[len(got)-50:])
	seen := map[string]bool{}
	for _, id := range got {
		require.False(t, seen[id], "%s comes twice", id)
		seen[id] = true
	}

	s.http.Config.Handler = nil
	s.http.CloseClientConnections()
	n := 0
	for _, err := range quick("http://127.0.0.1:1").AllSessions(ctx, client.SessionFilter{}) {
		require.ErrorIs(t, err, client.ErrUnreachable)
		n++
	}
	require.Equal(t, 1, n, "an error is last")
}
