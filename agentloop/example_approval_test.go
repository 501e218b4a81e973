package agentloop_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// A tool that a person must approve, if it is about much. The run is finished as
// soon as it asks, and nothing waits in memory.
func ExampleTool_requireApproval() {
	type transfer struct {
		Amount int `json:"amount"`
	}
	pay := agentloop.NewTool("pay", "Pays money.", func(_ context.Context, _ *agentloop.Call, in transfer) (string, error) {
		fmt.Printf("paying %d\n", in.Amount)
		return "paid", nil
	})
	pay.RequireApproval = func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
		var in transfer
		err := json.Unmarshal(args, &in)
		return in.Amount > 100, err
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "bank", Tools: []agentloop.Tool{pay},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "rent", Name: "pay", Arguments: json.RawMessage(`{"amount":900}`)}}},
			{Text: "The rent is paid."},
		}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "ada", AgentType: "bank", Messages: []agentloop.Input{{Content: "Pay the rent."}},
	})
	if err != nil {
		panic(err)
	}
	result, err := run.Result(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, result.Suspended.ToolCallIDs)

	// Hours later somebody says yes; a further run takes that up.
	answer, err := loop.Submit(ctx, engine.Submission{
		SessionID: "ada", ToolCallID: "rent", Kind: fact.SubmitApproval, Approved: true,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Status)
	if run, err = run.Resume(ctx, engine.ResumeRequest{}); err != nil {
		panic(err)
	}
	if result, err = run.Result(ctx); err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Status, result.Output)
	// Output:
	// suspended_client_tool [rent]
	// accepted
	// paying 900
	// completed: "The rent is paid."
}
