package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// A tool that the client executes: a browser knows where it is.
func ExampleTool_client() {
	where := agentloop.Tool{
		Name: "where", Description: "Asks the browser where the user is.", Client: true, Timeout: 10 * time.Minute,
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "guide", Tools: []agentloop.Tool{where},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "ask", Name: "where"}}}, {Text: "Go and see the Pantheon."},
		}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "ada", AgentType: "guide", Messages: []agentloop.Input{{Content: "What is there to see?"}},
	})
	if err != nil {
		panic(err)
	}
	result, err := run.Result(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, result.Suspended.ToolCallIDs)

	answer := engine.Submission{SessionID: "ada", ToolCallID: "ask", Kind: fact.SubmitClientResult}
	answer.Result = json.RawMessage(`"Rome"`)
	_, err = loop.Submit(ctx, answer)
	fmt.Println(err)
	answer.Result = json.RawMessage(`{"city":"Rome"}`)
	submitted, err := loop.Submit(ctx, answer)
	fmt.Println(submitted.Status, err)

	if run, err = run.Resume(ctx, engine.ResumeRequest{}); err != nil {
		panic(err)
	}
	if result, err = run.Result(ctx); err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Status, result.Output)
	// Output:
	// suspended_client_tool [ask]
	// result does not fit the tool's output schema
	// accepted <nil>
	// completed: "Go and see the Pantheon."
}
