package timetravel_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
)

// A session that continues from a checkpoint of another one. Neither knows of what
// happens in the other one. See also History.Fork.
func ExampleForkRequest() {
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "Fine."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	say := func(session, message string, branch *timetravel.ForkRequest) {
		run, err := loop.Execute(ctx, engine.StartRequest{
			SessionID: session, AgentType: "writer", Messages: []agentloop.Input{{Content: message}}, Branch: branch,
		})
		if err != nil {
			panic(err)
		}
		if _, err := run.Result(ctx); err != nil {
			panic(err)
		}
	}
	say("draft", "A poem about bridges.", nil)
	say("draft", "Make it rhyme.", nil)

	checkpoints, _, err := loop.TimeTravel.Checkpoints(ctx, "draft", 50, 0)
	if err != nil {
		panic(err)
	}
	say("other", "Make it short.", &timetravel.ForkRequest{
		FromSessionID: "draft", At: timetravel.Target{CheckpointID: checkpoints[0].ID},
	})

	for _, session := range []string{"draft", "other"} {
		can, err := loop.CanResume(ctx, session, "")
		if err != nil {
			panic(err)
		}
		fmt.Println(session)
		for _, m := range can.State.Messages {
			fmt.Printf("  %s: %s\n", m.Role, m.Content)
		}
	}
	// Output:
	// draft
	//   user: A poem about bridges.
	//   assistant: Fine.
	//   user: Make it rhyme.
	//   assistant: Fine.
	// other
	//   user: A poem about bridges.
	//   assistant: Fine.
	//   user: Make it short.
	//   assistant: Fine.
}
