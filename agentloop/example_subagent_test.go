package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// An agent that hands a task to another one. The other one's chunks come in the same
// stream, under its own session id.
func ExampleSubAgent() {
	call := func(id, name, args string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{ID: id, Name: name, Arguments: json.RawMessage(args)}}}
	}
	librarian := agentloop.Agent{
		Name: "librarian", Description: "Finds books.",
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`),
		Model: scripted.New([]scripted.Turn{
			call("f", agentloop.FinishTool, `{"title":"Sketch of the Analytical Engine"}`),
		}, nil),
	}
	tutor := agentloop.Agent{
		Name: "tutor", SubAgents: []agentloop.SubAgent{{Agent: "librarian"}},
		Model: scripted.New([]scripted.Turn{
			call("find", "subagent__librarian", `{"message":"Something about computers, from 1843."}`),
			{Text: "Read the Sketch of the Analytical Engine."},
		}, nil),
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{tutor, librarian}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "ada", AgentType: "tutor", Messages: []agentloop.Input{{Content: "What shall I read?"}},
	})
	if err != nil {
		panic(err)
	}
	for c, err := range run.Stream(ctx, 0) {
		if err != nil {
			panic(err)
		}
		switch c := c.Chunk.(type) {
		case *eventlog.SubAgentStart:
			fmt.Println(c.AgentID, "hands a task to", c.SubSessionID)
		case *eventlog.Output:
			fmt.Printf("%s gives %s\n", c.AgentID, c.Output)
		case *eventlog.SubAgentEnd:
			fmt.Printf("%s continues with %s\n", c.AgentID, c.Result)
		}
	}
	result, err := run.Result(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Status, result.Output)
	// Output:
	// ada hands a task to ada-sub-find
	// ada-sub-find gives {"title":"Sketch of the Analytical Engine"}
	// ada continues with {"title":"Sketch of the Analytical Engine"}
	// completed: "Read the Sketch of the Analytical Engine."
}
