package source

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// A cohort from a daemon is the one that its log has.
func TestACohortOfADaemon(t *testing.T) {
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{
		{Name: "one", Model: scripted.New([]scripted.Turn{{Text: "Yes."}}, nil)},
		{Name: "two", Model: scripted.New([]scripted.Turn{{Text: "No."}}, nil)},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	for id, agent := range map[string]string{"a": "one", "b": "two", "c": "one"} {
		h, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: id, AgentType: agent, Messages: []agentloop.Input{{Content: "So?"}}})
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
	}
	api, err := httpapi.New(httpapi.Options{Log: log, Loop: loop, AllowUnauthenticated: true})
	require.NoError(t, err)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)

	s := DaemonFlags{Server: server.URL}.Connect()
	f := cohort.Filter{Agent: "one"}
	c, err := cohort.Create(t.Context(), s.Cohort(t.Context(), f), cohort.Options{Filter: f})
	require.NoError(t, err)
	require.Len(t, c.Sessions, 2)
	for _, got := range c.Sessions {
		require.Equal(t, "completed", got.Status)
		n := 0
		for want, err := range log.Read(t.Context(), got.ID, 0, 0) {
			require.NoError(t, err)
			if want.Type == (*eventlog.TextDelta)(nil).Type() {
				continue
			}
			require.Equal(t, want.Sequence, got.Log[n].Sequence)
			require.Equal(t, string(want.Payload), string(got.Log[n].Payload))
			n++
		}
		require.Len(t, got.Log, n)
	}

	// A session that is erased between the listing and the reading is left out.
	sources := func(yield func(cohort.Source, error) bool) {
		for source, err := range s.Cohort(t.Context(), f) {
			require.NoError(t, err)
			if source.ID == "a" {
				_, err := log.Erase(t.Context(), "a")
				require.NoError(t, err)
			}
			if !yield(source, nil) {
				return
			}
		}
	}
	c, err = cohort.Create(t.Context(), sources, cohort.Options{Filter: f})
	require.NoError(t, err)
	require.Len(t, c.Sessions, 1)
	require.Equal(t, map[string]int{"erased": 1}, c.Header.Skipped)
}
