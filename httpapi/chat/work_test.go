package chat

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// longChat is a request to a session of many turns, whose messages the client repeats.
func longChat(t *testing.T, turns int, role string) *chat {
	t.Helper()
	parts, tree := "", &projector.Tree{Session: projector.Session{SessionID: "s", Stopped: &projector.Stopped{At: 1}}}
	step := &projector.Step{}
	for i := range turns {
		id := fmt.Sprint("call-", i)
		parts += fmt.Sprintf(`,{"type":"tool-t","toolCallId":%q,"state":"output-available","output":1}`, id)
		call := fact.ToolCall{ID: id, Name: "t"}
		step.Calls = append(step.Calls, projector.Call{ToolCall: call, Done: true})
		tree.Messages = append(tree.Messages,
			projector.Message{Role: projector.RoleUser, Content: "go", Sequence: uint64(2*i + 1)},
			projector.Message{Role: projector.RoleAssistant, Parts: []fact.TurnPart{{ToolCall: &call}}, Sequence: uint64(2*i + 2)},
		)
	}
	tree.Turn = &projector.Turn{Step: step}
	o, err := web.ParseObject([]byte(fmt.Sprintf(`{"messages":[{"id":%q,"role":%q,"parts":[{"type":"text","text":"hi"}%s]}]}`, strings.Repeat("m", 1<<20), role, parts)))
	require.NoError(t, err)
	c := &chat{s: new(Routes), tree: tree}
	c.body.readMessages(o)
	require.NoError(t, *o.Err)
	return c
}

// A request decodes its assistant message once: each of the session's calls, and each answer
// of the client, is looked up.
func TestALongMessageIsDecodedOnce(t *testing.T) {
	const turns = 1000
	c := longChat(t, turns, "assistant")
	require.Len(t, c.body.answers, turns)
	var shown, asked uint64
	require.Less(t, testing.AllocsPerRun(1, func() { shown, asked = c.shownUpTo(), c.askedAt() }), 10.0)
	require.EqualValues(t, 2*turns, shown)
	require.EqualValues(t, 2*turns, asked)
	require.Less(t, testing.AllocsPerRun(1, func() { require.False(t, c.answersCalls()) }), 10.0)
}

// The id of the client's message is decoded once, and not for each message of the session.
func TestALongIDIsDecodedOnce(t *testing.T) {
	c := longChat(t, 100, "user")
	require.False(t, c.saidEarlier()) // the ids in histories are made
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.False(t, c.saidEarlier())
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(c.body.lastID)))
}
