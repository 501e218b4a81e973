package remotehttp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// An agent calls an agent of another server. It is a tool for the model, as
// sub-agents are.
func ExampleNew() {
	there := memory.New()
	translator, err := engine.New(there, []agentloop.Agent{{
		Name: "translator", Model: scripted.New([]scripted.Turn{{Text: "Guten Tag."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer translator.Stop()
	served, err := httpapi.New(httpapi.Options{Log: there, Loop: translator, AllowUnauthenticated: true})
	if err != nil {
		panic(err)
	}
	defer served.Close()
	server := httptest.NewServer(served)
	defer server.Close()

	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "host", RemoteAgents: []agentloop.RemoteAgent{{
			Name: "german", Description: "Translates to German.", AgentType: "translator",
			Transport: remotehttp.New(server.URL, nil), Timeout: time.Minute,
		}},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{Name: "subagent__german", Arguments: []byte(`{"message":"Good day."}`)}}},
			{Text: "Say: Guten Tag."},
		}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()

	ctx := context.Background()
	run, err := loop.Execute(ctx, engine.StartRequest{
		SessionID: "s1", AgentType: "host", Messages: []agentloop.Input{{Content: "How do I greet a German?"}},
	})
	if err != nil {
		panic(err)
	}
	result, err := run.Result(ctx)
	fmt.Println(result.Status, string(result.Output), err)
	for session, err := range there.Sessions(ctx) {
		head, headErr := there.Head(ctx, session)
		fmt.Println("a session there:", head > 0, err, headErr)
	}
	// Output:
	// completed "Say: Guten Tag." <nil>
	// a session there: true <nil> <nil>
}
