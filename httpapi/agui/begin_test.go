package agui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// A session can become another user's between the authorization and the run.
func TestOwnerIsCheckedAgain(t *testing.T) {
	log := memory.New()
	base := fact.Base{SessionID: "s", Timestamp: 1}
	var entries []eventlog.Entry
	for _, f := range []fact.Fact{
		&fact.SessionCreated{AgentType: "brain", State: []byte("{}"), UserID: "ada", Base: base}, &fact.UserMessage{Content: "hello", Base: base},
		&fact.RunRequested{RunID: "run-1", Mode: fact.ModeStart, RunOptions: fact.RunOptions{Name: "r"}, Base: base},
	} {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "run-1"})
		require.NoError(t, err)
		entries = append(entries, e)
	}
	_, err := log.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	s := New(log, nil, snapshot.New(log, nil))
	repeat := func(user string) (*projector.Run, error) {
		return s.begin(auth.WithCaller(t.Context(), auth.Caller{User: user}), "brain", input{thread: "s", run: "r"})
	}
	run, err := repeat("ada")
	require.NoError(t, err)
	require.Equal(t, "run-1", run.RunID)
	_, err = repeat("bob")
	require.ErrorIs(t, err, auth.ErrForbidden)
}

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
