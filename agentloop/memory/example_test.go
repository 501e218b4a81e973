package memory_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// An agent that is reminded of what it knows about its user. A daemon's index
// is package projector/sqlite; this one folds the log for each question.
func Example() {
	ctx, log := context.Background(), logmemory.New()
	memories := memory.New(memory.Options{Log: log, Index: &index{log: log}, Embedder: local.New(0)})
	_, err := memories.Save(ctx, memory.Draft{
		Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}, Content: "Ada's dog is called Rex.",
	})
	if err != nil {
		panic(err)
	}

	friend := agentloop.Agent{
		Name: "friend", SystemPrompt: "You are a good friend.",
		Model: scripted.New([]scripted.Turn{{Text: "Rex, isn't it?"}}, nil), // in place of a provider's
	}
	if err := memories.Equip(&friend, memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3, Save: true, Search: true}); err != nil {
		panic(err)
	}
	loop, err := engine.New(log, []agentloop.Agent{friend}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "s", AgentType: "friend", UserID: "ada", Messages: []agentloop.Input{{Content: "What is my dog called?"}},
	})
	if err != nil {
		panic(err)
	}
	if _, err := run.Result(ctx); err != nil {
		panic(err)
	}
	can, err := loop.CanResume(ctx, "s", "")
	if err != nil {
		panic(err)
	}
	for _, m := range can.State.Messages {
		if m.Role == projector.RoleUser {
			fmt.Println(m.Content)
		}
	}
	// Output:
	// What is my dog called?
	// What you remember that may matter here:
	// - Ada's dog is called Rex.
}
