package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/agentloop/model/scripted"
)

func TestNameOf(t *testing.T) {
	turns := []scripted.Turn{{Text: "hi"}}
	for _, m := range []model.Model{
		anthropic.New("wise", nil), openai.New("wise", nil), openairesponses.New("wise", nil),
		scripted.New(turns, &scripted.Options{Name: "wise"}),
	} {
		require.Equal(t, "wise", model.NameOf(m), "%T", m)
	}
	require.Equal(t, "scripted", model.NameOf(scripted.New(turns, nil)))
	require.Empty(t, model.NameOf(struct{ model.Model }{}), "one that does not tell")
}
