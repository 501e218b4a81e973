package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/timeline"
)

// TestTimeline compares the timeline of a session with the fold of its log,
// while it runs, waits and goes back; who asks for news gets those alone.
func TestTimeline(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), waitingAgents())
	last := uint64(0)
	checked := func() timeline.View {
		t.Helper()
		var v, news timeline.View
		a.get("/sessions/s/timeline").decode(t, &v)
		want := timeline.New()
		for r, err := range a.log.Read(a.ctx(), "s", 0, v.Head) {
			require.NoError(t, err)
			want.Apply(r)
		}
		require.Equal(t, want.Since(0), v)
		a.get(fmt.Sprint("/sessions/s/timeline?from=", last)).decode(t, &news)
		require.Equal(t, want.Since(last), news)
		last = v.Head
		return v
	}
	waits := func(v timeline.View) (all []timeline.Span) {
		for _, s := range v.Spans {
			if s.Kind == timeline.KindApproval || s.Kind == timeline.KindClientTool {
				all = append(all, s)
			}
		}
		return all
	}
	a.begin("s", "asker")
	before := checked()
	require.NotEmpty(t, waits(before))
	for _, s := range waits(before) {
		require.Equal(t, []any{true, timeline.StatusWaiting}, []any{s.Open, s.Status})
	}
	back := before.Head
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s","mode":"with_confirmation","approved":true}`).status)
	a.wait("s")
	for _, s := range waits(checked()) {
		require.False(t, s.Open)
	}
	require.Equal(t, 200, a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, back)).status)
	again := checked()
	open := 0
	for _, s := range waits(again) {
		if s.Open {
			open++
		}
	}
	require.Len(t, waits(before), open, "what waited there waits again")

	a.get(fmt.Sprint("/sessions/s/timeline?from=", again.Head+1)).failed(t, 416, api.CodeCursorAhead)
	a.get("/sessions/s/timeline?from=x").failed(t, 400, api.CodeInvalidRequest)
	a.get("/sessions/nobody/timeline").failed(t, 404, api.CodeNotFound)
	a.request("DELETE", "/sessions/s", "").done(t)
	a.get("/sessions/s/timeline").failed(t, 404, api.CodeNotFound)
}
