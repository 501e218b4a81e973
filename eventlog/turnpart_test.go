package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func TestTurnPartsKeepWhatTheProviderWantsBack(t *testing.T) {
	turn := &eventlog.ModelTurn{StepID: "s", StopReason: eventlog.StopEndTurn, FactBase: factBase, Parts: []eventlog.TurnPart{
		{Reasoning: "so", ProviderData: raw(`{"provider":"p","signature":"a+b/c=="}`)},
		{ProviderData: raw(`{"provider":"p","redacted":"x"}`)},
		{Text: "a", ProviderData: raw(`{"provider":"p"}`)},
		{Source: &eventlog.Source{ID: "source_1_0", URL: "https://example.com/?a=1&b=2", Title: "Example"}},
		{Source: &eventlog.Source{ID: "source_1_1", MediaType: "application/pdf", Title: "Report", Filename: "r.pdf"}},
		{File: &eventlog.MessageFile{Data: "data:image/png;base64,AA==", MediaType: "image/png"}},
	}}
	wire, err := eventlog.EncodeFact(turn)
	require.NoError(t, err)
	require.Contains(t, string(wire), `"parts":[`+
		`{"reasoning":"so","providerData":{"provider":"p","signature":"a+b/c=="}},`+
		`{"providerData":{"provider":"p","redacted":"x"}},`+
		`{"text":"a","providerData":{"provider":"p"}},`+
		`{"source":{"sourceId":"source_1_0","url":"https://example.com/?a=1&b=2","title":"Example"}},`+
		`{"source":{"sourceId":"source_1_1","mediaType":"application/pdf","title":"Report","filename":"r.pdf"}},`+
		`{"file":{"data":"data:image/png;base64,AA==","mediaType":"image/png"}}],`)
	got, err := eventlog.DecodeFact(wire)
	require.NoError(t, err)
	require.Equal(t, turn, got)
}

func TestBadTurnParts(t *testing.T) {
	for field, part := range map[string]eventlog.TurnPart{
		"parts[0].providerData":    {ProviderData: raw(`"text"`)},
		"parts[0].source.sourceId": {Source: &eventlog.Source{URL: "https://example.com"}},
	} {
		_, err := eventlog.EncodeFact(&eventlog.ModelTurn{
			StepID: "s", Parts: []eventlog.TurnPart{part}, StopReason: eventlog.StopEndTurn, FactBase: factBase,
		})
		var invalid *eventlog.ValidationError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}
