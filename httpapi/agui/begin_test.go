package agui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Decisions are looked up among the thread's calls, which are collected once.
func TestManyDecisions(t *testing.T) {
	const calls = 1000
	tree, in := &projector.Tree{Session: projector.Session{SessionID: "s"}}, input{}
	for i := range calls {
		id := fmt.Sprint("call-", i)
		tree.Messages = append(tree.Messages, projector.Message{Parts: []fact.TurnPart{{ToolCall: &fact.ToolCall{ID: id}}}})
		in.resume = append(in.resume, decision{interrupt: "run-1::" + id})
	}
	require.Less(t, testing.AllocsPerRun(1, func() { require.NoError(t, in.checkResume(tree)) }), calls/10.0)
	in.resume[calls-1].interrupt = "run-1::other"
	require.ErrorContains(t, in.checkResume(tree), "no interrupt")
	require.Error(t, in.checkResume(nil))
}
