package engine_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
)

// A process goes away while a tool runs. The next one continues where the log
// ends: the model is not asked again for what it has said, and tools that have
// finished do not run again.
func ExampleLoop_Resume_restart() {
	log := memory.New() // in earnest, eventlog/jetstream
	running := make(chan struct{}, 1)
	quick := agentloop.NewTool("quick", "", func(context.Context, *agentloop.Call, struct{}) (string, error) {
		fmt.Println("quick runs")
		return "done", nil
	})
	slow := func(hang bool) agentloop.Tool {
		return agentloop.NewTool("slow", "", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (string, error) {
			fmt.Println("slow runs")
			if hang {
				running <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "done", nil
		})
	}
	process := func(hang bool) *engine.Loop {
		loop, err := engine.New(log, []agentloop.Agent{{
			Name: "worker", Tools: []agentloop.Tool{quick, slow(hang)},
			Model: scripted.New([]scripted.Turn{
				{ToolCalls: []scripted.Call{{Name: "quick", Arguments: json.RawMessage(`{}`)}}},
				{ToolCalls: []scripted.Call{{Name: "slow", Arguments: json.RawMessage(`{}`)}}},
				{Text: "All done."},
			}, nil),
		}}, nil)
		if err != nil {
			panic(err)
		}
		return loop
	}

	ctx := context.Background()
	first := process(true)
	_, err := first.Start(ctx, engine.StartRequest{
		SessionID: "ada", AgentType: "worker", Messages: []agentloop.Input{{Content: "Work."}},
	})
	if err != nil {
		panic(err)
	}
	<-running
	first.Stop()

	second := process(false)
	defer second.Stop()
	if _, err := second.Resume(ctx, engine.ResumeRequest{SessionID: "ada"}); err != nil {
		panic(err)
	}
	run, err := second.Handle(ctx, "ada")
	if err != nil {
		panic(err)
	}
	result, err := run.Result(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %s\n", result.Status, result.Output)
	// Output:
	// quick runs
	// slow runs
	// slow runs
	// completed: "All done."
}
