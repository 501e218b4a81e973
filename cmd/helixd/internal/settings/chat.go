package settings

import (
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

// Chat returns how chat is served, nil where there is no agent to talk to.
func Chat(c config.Chat, agents []agentloop.Agent) *httpapi.ChatOptions {
	if len(agents) == 0 {
		return nil
	}
	return &httpapi.ChatOptions{
		DefaultAgent: c.DefaultAgent, NoAutoResume: !c.AutoResume, NoContentReplay: !c.ContentReplay, LooseParts: !c.StrictParts,
		StartMetadata: metadataOf(c.StartMetadata), FinishMetadata: metadataOf(c.FinishMetadata), MessageID: c.MessageName,
		ChunkFilter: shownChunks(c.HideChunks), ExposeCheckpoints: c.ExposeCheckpoints, NoResyncOnResume: !c.ResyncOnResume,
	}
}

func metadataOf(raw json.RawMessage) func(agentID string) any {
	if raw == nil {
		return nil
	}
	return httpapi.StaticMetadata(raw)
}

// shownChunks is the filter that leaves types of chunks out; nil: none.
func shownChunks(hidden []string) func(eventlog.Chunk) bool {
	if len(hidden) == 0 {
		return nil
	}
	return func(c eventlog.Chunk) bool { return !slices.Contains(hidden, c.Type()) }
}
