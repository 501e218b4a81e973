package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine/timetravel"
)

// A fork's conversation begins with the items of the one that it was copied from; only their ids
// are others.
func TestAForkHasTheItemsBefore(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := g.create(object{"input": "call clock"})
	g.create(object{"input": "hello", "previous_response_id": first["id"]})
	session := sessionOf(first)
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: session, NewSessionID: "fork"})
	require.NoError(t, err)

	ids := map[any]bool{}
	itemsOf := func(session string) (all []object) {
		for _, o := range g.get("/conversations/conv_" + session + "/items?order=asc&limit=100")["data"].([]any) {
			item := o.(object)
			require.Equal(t, item, g.get("/conversations/conv_"+session+"/items/"+item["id"].(string)))
			require.False(t, ids[item["id"]])
			ids[item["id"]] = true
			delete(item, "id")
			all = append(all, item)
		}
		return all
	}
	before := itemsOf(session)
	require.Len(t, before, 7)
	require.Equal(t, before, itemsOf("fork"))

	more := g.create(object{"input": "context", "conversation": "conv_fork"})
	require.Equal(t, "conv_fork", more["conversation"].(object)["id"])
	clear(ids)
	require.Equal(t, before, itemsOf(session), "the other one has nothing of it")
	require.Equal(t, before, itemsOf("fork")[:len(before)])
}
