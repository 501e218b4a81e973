package snapshot_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// The state at any sequence is the fold of the records up to it: here before
// and after an agent has answered.
func ExampleStore_At() {
	ctx := context.Background()
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "greeter", Model: scripted.New([]scripted.Turn{{Text: "Hello, Ada."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "s1", AgentType: "greeter", Messages: []agentloop.Input{{Content: "I am Ada."}},
	})
	if err != nil {
		panic(err)
	}
	if _, err := run.Result(ctx); err != nil {
		panic(err)
	}

	states := snapshot.New(log, nil)
	now, err := states.Head(ctx, "s1")
	if err != nil {
		panic(err)
	}
	then, err := states.At(ctx, "s1", 3) // created, message, run requested
	if err != nil {
		panic(err)
	}
	for _, tree := range []struct {
		status   any
		messages int
	}{{then.Status, len(then.Messages)}, {now.Status, len(now.Messages)}} {
		fmt.Println(tree.status, tree.messages)
	}
	// Output:
	// active 1
	// completed 2
}
