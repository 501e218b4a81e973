package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
)

// An agent with a tool that is a Go function. Its arguments' schema comes from
// the function's argument; it keeps notes in the session's state.
func ExampleNewTool() {
	type cart struct {
		Items []string `json:"items"`
	}
	type item struct {
		Name  string `json:"name" jsonschema:"what to buy"`
		Count int    `json:"count" jsonschema:"how many"`
	}
	add := agentloop.NewTool("add_to_cart", "Puts something into the cart.",
		func(_ context.Context, c *agentloop.Call, in item) (string, error) {
			err := agentloop.UpdateState(c, func(s *cart) error {
				s.Items = append(s.Items, fmt.Sprintf("%d %s", in.Count, in.Name))
				return nil
			})
			return "it is in the cart", err
		})

	shop := agentloop.Agent{
		Name: "shop", SystemPrompt: "You help people to shop.", Tools: []agentloop.Tool{add},
		Model: scripted.New([]scripted.Turn{ // in place of a provider's
			{ToolCalls: []scripted.Call{{Name: "add_to_cart", Arguments: json.RawMessage(`{"name":"apples","count":3}`)}}},
			{Text: "Three apples it is."},
		}, nil),
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{shop}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "ada", AgentType: "shop", Messages: []agentloop.Input{{Content: "Three apples, please."}},
	})
	if err != nil {
		panic(err)
	}
	result, err := run.Result(ctx)
	if err != nil {
		panic(err)
	}
	can, err := loop.CanResume(ctx, "ada", "")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Status, result.Output)
	fmt.Printf("%s\n", can.State.CustomState)
	// Output:
	// completed: "Three apples it is."
	// {"items":["3 apples"]}
}
