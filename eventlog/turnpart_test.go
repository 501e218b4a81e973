package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestTurnPartsKeepWhatTheProviderWantsBack(t *testing.T) {
	turn := &fact.ModelTurn{StepID: "s", StopReason: fact.StopEndTurn, Base: factBase, Parts: []fact.TurnPart{
		{Reasoning: "so", ProviderData: raw(`{"provider":"p","signature":"a+b/c=="}`)},
		{ProviderData: raw(`{"provider":"p","redacted":"x"}`)},
		{Text: "a", ProviderData: raw(`{"provider":"p"}`)},
		{Source: &fact.Source{ID: "source_1_0", URL: "https://example.com/?a=1&b=2", Title: "Example"}},
		{Source: &fact.Source{ID: "source_1_1", MediaType: "application/pdf", Title: "Report", Filename: "r.pdf"}},
		{File: &fact.MessageFile{Data: "data:image/png;base64,AA==", MediaType: "image/png"}},
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
	for field, part := range map[string]fact.TurnPart{
		"parts[0].providerData":    {ProviderData: raw(`"text"`)},
		"parts[0].source.sourceId": {Source: &fact.Source{URL: "https://example.com"}},
	} {
		_, err := eventlog.EncodeFact(&fact.ModelTurn{
			StepID: "s", Parts: []fact.TurnPart{part}, StopReason: fact.StopEndTurn, Base: factBase,
		})
		var invalid *eventlog.ValidationError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
}
