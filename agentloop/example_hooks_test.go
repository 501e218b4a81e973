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

// Hooks are notified of what a run does, and may keep notes in its state.
func ExampleHooks() {
	type state struct {
		Tools []string `json:"tools"`
	}
	over := make(chan struct{})
	hooks := &agentloop.Hooks{
		BeforeTool: func(_ context.Context, _ *agentloop.HookContext, p agentloop.BeforeToolPayload) {
			fmt.Printf("%s is called with %s\n", p.Tool.Name, p.Arguments)
		},
		AfterTool: func(_ context.Context, h *agentloop.HookContext, p agentloop.AfterToolPayload) {
			err := agentloop.UpdateState(h, func(s *state) error {
				s.Tools = append(s.Tools, p.Tool.Name)
				return nil
			})
			fmt.Printf("%s says %s, %v\n", p.Tool.Name, p.Result, err)
		},
		OnAgentComplete: func(_ context.Context, _ *agentloop.HookContext, p agentloop.AgentCompletePayload) {
			fmt.Printf("the answer is %s, the state %s\n", p.Output, p.FinalState)
			close(over)
		},
	}
	greet := agentloop.NewTool("greet", "Greets somebody.", func(_ context.Context, _ *agentloop.Call, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "hello " + in.Name, nil
	})
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "greeter", Tools: []agentloop.Tool{greet}, Hooks: hooks,
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{Name: "greet", Arguments: json.RawMessage(`{"name":"Ada"}`)}}}, {Text: "Done."},
		}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()
	_, err = loop.Start(context.Background(), engine.StartRequest{
		SessionID: "s", AgentType: "greeter", Messages: []agentloop.Input{{Content: "Greet Ada."}},
	})
	if err != nil {
		panic(err)
	}
	<-over
	// Output:
	// greet is called with {"name":"Ada"}
	// greet says "hello Ada", <nil>
	// the answer is "Done.", the state {"tools":["greet"]}
}
