package timetravel_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// A session is taken back to a checkpoint. Its log still has everything: the
// state before the rollback can be seen at any sequence.
func ExampleHistory_Rollback() {
	ctx, log := context.Background(), memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "Fine."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()
	for _, message := range []string{"A poem about bridges.", "Make it rhyme."} {
		run, err := loop.Execute(ctx, engine.StartRequest{
			SessionID: "draft", AgentType: "writer", Messages: []agentloop.Input{{Content: message}},
		})
		if err != nil {
			panic(err)
		}
		if _, err := run.Result(ctx); err != nil {
			panic(err)
		}
	}
	before, err := log.Head(ctx, "draft")
	if err != nil {
		panic(err)
	}

	checkpoints, _, err := loop.TimeTravel.Checkpoints(ctx, "draft", 50, 0)
	if err != nil {
		panic(err)
	}
	if _, err := loop.TimeTravel.Rollback(ctx, "draft", timetravel.Target{CheckpointID: checkpoints[0].ID}); err != nil {
		panic(err)
	}
	states := snapshot.New(log, nil)
	now, err := states.Head(ctx, "draft")
	if err != nil {
		panic(err)
	}
	then, err := states.At(ctx, "draft", before)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(then.Messages), len(now.Messages))
	// Output:
	// 4 2
}
