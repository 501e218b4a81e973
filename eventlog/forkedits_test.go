package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// What was edited in a fork is named as it was, and is no secret to readers of
// the record.
func TestEditsOfAFork(t *testing.T) {
	forked := func(edits *fact.ForkEdits) *fact.SessionForked {
		return &fact.SessionForked{FromSessionID: "s", FromSequence: 7, State: raw(`{}`), Edits: edits, Base: factBase}
	}
	want := forked(&fact.ForkEdits{Message: new(int), ToolCallID: "call-1", SystemPrompt: true, Digest: "0af7651916cd43dd"})
	payload, err := eventlog.EncodeFact(want)
	require.NoError(t, err)
	require.Contains(t, string(payload), `"edits":{"message":0,"toolCallId":"call-1","systemPrompt":true,"digest":"0af7651916cd43dd"}`)
	got, err := eventlog.DecodeFact(payload)
	require.NoError(t, err)
	require.Equal(t, want, got)

	before := -1
	for field, edits := range map[string]fact.ForkEdits{
		"edits.message": {Message: &before, Digest: "d"}, "edits.toolCallId": {ToolCallID: "a\x00b", Digest: "d"}, "edits.digest": {},
	} {
		_, err := eventlog.EncodeFact(forked(&edits))
		var problem *eventlog.ValidationError
		require.ErrorAs(t, err, &problem)
		require.Equal(t, field, problem.Field)
	}
}
