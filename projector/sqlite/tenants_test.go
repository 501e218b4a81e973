package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// A tenant's usage is the sum of its sessions whatever has happened to them, and is the
// same after the rows are built again.
func TestTenantUse(t *testing.T) {
	w := newWorld(t)
	w.open()
	base := func(id string) fact.Base { return fact.Base{SessionID: id, Timestamp: 1} }
	of := func(id string, f fact.Fact) eventlog.Entry {
		e, err := eventlog.NewFact(id, f, eventlog.Labels{})
		require.NoError(t, err)
		return e
	}
	want := readmodel.TenantUse{}
	heads := map[string]uint64{}
	for i := range 3 {
		id := fmt.Sprint("s", i)
		for _, e := range []eventlog.Entry{
			of(id, &fact.SessionCreated{AgentType: "writer", Tenant: "red", Base: base(id)}),
			of(id, &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: base(id)}),
		} {
			heads[id] = w.append(id, e)
			want.Bytes += int64(len(e.Payload))
		}
		want.Sessions++
		want.Runs++
	}
	w.append("other", of("other", &fact.SessionCreated{AgentType: "writer", Tenant: "blue", Base: base("other")}))
	w.append("free", of("free", &fact.SessionCreated{AgentType: "writer", Base: base("free")}))
	uses := func(want readmodel.TenantUse, roots ...string) {
		t.Helper()
		var got readmodel.TenantUse
		require.Eventually(t, func() (ok bool) {
			var err error
			got, err = w.models.TenantUse(t.Context(), "red", roots)
			return err == nil && w.models.Fresh(t.Context()).Current && got.Sessions == want.Sessions && got.Bytes == want.Bytes && got.Runs == want.Runs
		}, patience, 5*time.Millisecond)
		for root, tree := range want.Trees {
			require.Equal(t, tree, got.Trees[root])
		}
		require.Len(t, got.Trees, len(want.Trees))
	}
	uses(want)

	end := of("s1", &fact.RunEnded{RunID: "r", Status: fact.RunCompleted, Base: base("s1")})
	heads["s1"] = w.append("s1", end)
	want.Runs--
	want.Bytes += int64(len(end.Payload))
	withTrees := want
	each := (want.Bytes - int64(len(end.Payload))) / 3
	withTrees.Trees = map[string]readmodel.TreeUse{
		"s0": {Head: heads["s0"], Bytes: each, Running: true}, "s1": {Head: heads["s1"], Bytes: each + int64(len(end.Payload))},
	}
	uses(withTrees, "s0", "s1", "nobody")

	erase := func(id string) {
		t.Helper()
		_, err := w.log.Erase(t.Context(), id)
		require.NoError(t, err)
	}
	erase("s0")
	want.Sessions, want.Runs, want.Bytes = 2, 1, want.Bytes-each
	uses(want)
	w.close()
	w.opts.Path += ".again"
	w.open()
	uses(want)
	for _, id := range []string{"s1", "s2"} {
		erase(id)
	}
	uses(readmodel.TenantUse{})
}
