package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// An agent with files. Its model uses them by tools; each session has its own.
func ExampleWorkspace() {
	call := func(op, args string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{Name: "workspace_" + op, Arguments: json.RawMessage(args)}}}
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "planner", Workspace: &agentloop.Workspace{Provider: inmemory.ID},
		Model: scripted.New([]scripted.Turn{
			call("write_file", `{"path":"plan.txt","content":"walls, roof"}`),
			call("read_file", `{"path":"plan.txt"}`),
			{Text: "That is the plan."},
		}, nil),
	}}, &engine.Options{Workspaces: []workspace.Provider{inmemory.New(nil)}})
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "s1", AgentType: "planner", Messages: []agentloop.Input{{Content: "Plan a house."}},
	})
	if err != nil {
		panic(err)
	}
	for stored, err := range run.Stream(ctx, 0) {
		if err != nil {
			panic(err)
		}
		if end, ok := stored.Chunk.(*eventlog.ToolEnd); ok {
			fmt.Printf("%s\n", end.Result)
		}
	}
	// Output:
	// {"path":"plan.txt","size":11}
	// {"path":"plan.txt","content":"walls, roof","size":11}
}
