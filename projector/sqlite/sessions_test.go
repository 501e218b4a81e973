package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestSessionsByFilter(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		id := fmt.Sprintf("s%d", i)
		tags := []string{"all"}
		if i%5 == 0 {
			tags = append(tags, "fifth")
		}
		w.append(id, factOf(id, "", &fact.SessionCreated{
			AgentType: []string{"red", "blue"}[i%2], UserID: fmt.Sprint("user", i%3), Tags: tags,
			Metadata: map[string]string{"n": fmt.Sprint(i), "half": []string{"low", "high"}[i/5]}, Base: factAt(id, int64(i)),
		}))
	}
	for _, id := range []string{"s2", "s7"} {
		w.append(id, factOf(id, "", &fact.StreamPaused{Base: factAt(id, 20)}))
	}
	w.open()
	for _, tc := range []struct {
		name   string
		filter readmodel.SessionFilter
		want   []string
		total  int
	}{
		{"all", readmodel.SessionFilter{}, []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"}, 10},
		{"agent", readmodel.SessionFilter{AgentType: "blue"}, []string{"s1", "s3", "s5", "s7", "s9"}, 5},
		{"user", readmodel.SessionFilter{UserID: "user2"}, []string{"s2", "s5", "s8"}, 3},
		{"tag", readmodel.SessionFilter{Tag: "fifth"}, []string{"s0", "s5"}, 2},
		{"metadata", readmodel.SessionFilter{Metadata: map[string]string{"n": "3"}}, []string{"s3"}, 1},
		{"entries of metadata", readmodel.SessionFilter{Metadata: map[string]string{"half": "low", "n": "3"}}, []string{"s3"}, 1},
		{"no such metadata", readmodel.SessionFilter{Metadata: map[string]string{"half": "low", "n": "7"}}, []string{}, 0},
		{"created from", readmodel.SessionFilter{From: 8}, []string{"s8", "s9"}, 2},
		{"created to", readmodel.SessionFilter{To: 2}, []string{"s0", "s1"}, 2},
		{"created between", readmodel.SessionFilter{From: 2, To: 9, AgentType: "red", Metadata: map[string]string{"half": "low"}}, []string{"s2", "s4"}, 2},
		{"status", readmodel.SessionFilter{Status: projector.SessionFailed}, []string{}, 0},
		{"together", readmodel.SessionFilter{Tag: "fifth", AgentType: "red", UserID: "user0"}, []string{"s0"}, 1},
		{"no such parent", readmodel.SessionFilter{ParentSessionID: "s0"}, []string{}, 0},
		{"page", readmodel.SessionFilter{Paging: readmodel.Paging{Offset: 4, Limit: 3}}, []string{"s4", "s5", "s6"}, 10},
		{"after the end", readmodel.SessionFilter{Paging: readmodel.Paging{Offset: 40, Limit: 3}}, []string{}, 10},
		{
			"what may be seen",
			readmodel.SessionFilter{Visible: func(root string) bool { return root > "s5" }, Paging: readmodel.Paging{Offset: 1, Limit: 2}},
			[]string{"s7", "s8"}, 4,
		},
		{
			"what may be seen of some",
			readmodel.SessionFilter{AgentType: "red", Visible: func(root string) bool { return root > "s5" }},
			[]string{"s6", "s8"}, 2,
		},
		{"stream status", readmodel.SessionFilter{StreamStatus: eventlog.StreamWaiting}, []string{"s2", "s7"}, 2},
		{"status and stream status", readmodel.SessionFilter{Status: projector.SessionActive, StreamStatus: eventlog.StreamActive, AgentType: "red"}, []string{"s0", "s4", "s6", "s8"}, 4},
	} {
		require.Equal(t, tc.want, w.ids(tc.filter), tc.name)
		page := w.sessions(tc.filter)
		require.Equal(t, tc.total, page.Total, tc.name)
		require.Equal(t, tc.filter.Offset+len(tc.want) < tc.total, page.HasMore, tc.name)
	}
	_, err := w.models.Sessions(t.Context(), readmodel.SessionFilter{Paging: readmodel.Paging{Limit: 201}})
	var bad *readmodel.QueryError
	require.ErrorAs(t, err, &bad)

	w.append("s00", created("s00", "red", ""))
	require.Equal(t, 11, w.sessions(readmodel.SessionFilter{}).Total, "what was acknowledged before is in")
	w.open()
	require.Equal(t, 11, w.sessions(readmodel.SessionFilter{}).Total, "also when it is started again")
}

// TestSessionsByUpdate: the session that changed last comes first, also after an existing
// session changes, and in pages that leave out invisible sessions.
func TestSessionsByUpdate(t *testing.T) {
	w := newWorld(t)
	at := func(id string, ms int64) eventlog.Entry {
		return factOf(id, "", &fact.UserMessage{Content: "x", Base: factAt(id, ms)})
	}
	for i, ms := range []int64{300, 100, 500, 500, 200} {
		id := fmt.Sprint("s", i)
		w.append(id, created(id, "agent", ""), at(id, ms))
	}
	w.open()
	latest := readmodel.SessionFilter{Sort: readmodel.ByUpdated}
	require.Equal(t, []string{"s3", "s2", "s0", "s4", "s1"}, w.ids(latest))
	w.append("s1", at("s1", 400))
	require.Equal(t, []string{"s3", "s2", "s1", "s0", "s4"}, w.ids(latest))
	latest.Paging = readmodel.Paging{Offset: 1, Limit: 2}
	require.Equal(t, []string{"s2", "s1"}, w.ids(latest))
	latest.Visible = func(root string) bool { return root != "s2" }
	require.Equal(t, []string{"s1", "s0"}, w.ids(latest))
	require.Equal(t, []string{"s0", "s1", "s2", "s3", "s4"}, w.ids(readmodel.SessionFilter{Sort: readmodel.ByID}))
}

func TestExpiring(t *testing.T) {
	w := newWorld(t)
	for i, expires := range []int64{300, 0, 100, 200} {
		id := fmt.Sprint("s", i)
		w.append(id, created(id, "a", ""), factOf(id, "r", &fact.RunRequested{
			RunID: "r", Mode: fact.ModeStart, ExpiresAt: expires, Base: factAt(id, 3),
		}))
	}
	w.open()
	require.Equal(t, 4, w.sessions(readmodel.SessionFilter{}).Total)
	got := []string{}
	for id, err := range w.models.Expiring(t.Context(), time.UnixMilli(300)) {
		require.NoError(t, err)
		got = append(got, id)
	}
	require.Equal(t, []string{"s2", "s3"}, got)
	w.models.Close()
	for _, err := range w.models.Expiring(t.Context(), time.UnixMilli(300)) {
		require.ErrorIs(t, err, readmodel.ErrUnavailable)
	}
}
