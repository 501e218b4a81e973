package main

import (
	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// chatOf returns how chat is served, nil where there is no agent to talk to.
func chatOf(c config.Chat, agents []agentloop.Agent) *httpapi.ChatOptions {
	if len(agents) == 0 {
		return nil
	}
	return &httpapi.ChatOptions{
		DefaultAgent: c.DefaultAgent, NoAutoResume: !c.AutoResume, NoContentReplay: !c.ContentReplay, LooseParts: !c.StrictParts,
	}
}
