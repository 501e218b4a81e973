package uimessage_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// rendered returns the parts of the only assistant message of a step.
func rendered(t *testing.T, parts []fact.TurnPart, calls ...projector.Call) string {
	t.Helper()
	before := uint64(0)
	s := &projector.Tree{Session: projector.Session{
		Messages: []projector.Message{{Role: projector.RoleAssistant, Turn: 1, Parts: parts}},
		Turn:     &projector.Turn{Number: 1, Before: &before, Step: &projector.Step{Recorded: true, Calls: calls}},
	}}
	messages := uimessage.Render(s, nil)
	require.Len(t, messages, 1)
	raw, err := json.Marshal(messages[0].Parts[1:])
	require.NoError(t, err)
	return string(raw)
}

func TestSourcesAndFilesAreParts(t *testing.T) {
	require.JSONEq(t, `[
		{"type":"text","text":"See there.","state":"done"},
		{"type":"source-url","sourceId":"s1","url":"https://a.example","title":"A"},
		{"type":"source-document","sourceId":"s2","mediaType":"application/pdf","title":"B","filename":"b.pdf"},
		{"type":"file","url":"data:image/png;base64,AA==","mediaType":"image/png"}
	]`, rendered(t, []fact.TurnPart{
		{ProviderData: json.RawMessage(`{"provider":"p"}`)},
		{Text: "See there."},
		{Source: &fact.Source{ID: "s1", URL: "https://a.example", Title: "A"}},
		{Source: &fact.Source{ID: "s2", MediaType: "application/pdf", Title: "B", Filename: "b.pdf"}},
		{File: &fact.MessageFile{Data: "data:image/png;base64,AA==", MediaType: "image/png"}},
	}), "what is only the provider's is no part")
}

func TestCallsThatWaitSaySo(t *testing.T) {
	call := fact.ToolCall{ID: "c", Name: "pay", Arguments: json.RawMessage(`{"to":"x"}`)}
	parts := []fact.TurnPart{{ToolCall: &call}}
	approval := &projector.Pending{Kind: fact.PendingApproval, ApprovalID: "r::c"}
	require.JSONEq(t, `[{"type":"tool-pay","toolCallId":"c","state":"approval-requested",
		"input":{"to":"x"},"approval":{"id":"r::c"}}]`,
		rendered(t, parts, projector.Call{ToolCall: call, Pending: approval}))
	require.JSONEq(t, `[{"type":"tool-pay","toolCallId":"c","state":"approval-responded",
		"input":{"to":"x"},"approval":{"id":"r::c","approved":false,"reason":"no"}}]`,
		rendered(t, parts, projector.Call{ToolCall: call, Pending: approval, Answer: &projector.Answer{Reason: "no"}}))
	require.JSONEq(t, `[{"type":"tool-pay","toolCallId":"c","state":"input-available","input":{"to":"x"}}]`,
		rendered(t, parts, projector.Call{ToolCall: call, Pending: &projector.Pending{Kind: fact.PendingClient}}),
		"the client has to execute it")
}
