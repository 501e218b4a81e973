package engine_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// A run is started, followed until the reader leaves, and followed again from
// where it was, by a handle that another process could have made.
func ExampleHandle_Stream() {
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "poet", Model: scripted.New([]scripted.Turn{{Text: "Roses are red."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "s1", AgentType: "poet", Messages: []agentloop.Input{{Content: "A poem, please."}},
	})
	if err != nil {
		panic(err)
	}
	cursor := uint64(0)
	for stored, err := range run.Stream(ctx, cursor) {
		if err != nil {
			panic(err)
		}
		cursor = stored.Sequence
		break // after the first chunk
	}

	if run, err = loop.Handle(ctx, "s1"); err != nil {
		panic(err)
	}
	var poem strings.Builder // in one chunk or several: the reader may be at the end before the model is
	for stored, err := range run.Stream(ctx, cursor) {
		if err != nil {
			panic(err)
		}
		if text, ok := stored.Chunk.(*eventlog.TextDelta); ok {
			poem.WriteString(text.Delta)
		}
	}
	fmt.Println(poem.String())
	result, err := run.Result(ctx)
	fmt.Println(result.Status, string(result.Output), err)
	// Output:
	// Roses are red.
	// completed "Roses are red." <nil>
}
