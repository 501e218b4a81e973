package main

import (
	"context"
	"net/http/httptest"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// A server with an agent like the janitor of `helixd dev`.
func Example() {
	type files struct {
		Paths []string `json:"paths"`
	}
	tool := agentloop.NewTool("delete_files", "", func(context.Context, *agentloop.Call, files) (string, error) { return "deleted", nil })
	tool.RequireApproval = agentloop.AlwaysApprove
	store := memory.New()
	loop, err := engine.New(store, []agentloop.Agent{{
		Name: "janitor", Tools: []agentloop.Tool{tool},
		Model: scripted.New([]scripted.Turn{
			{Text: "May I delete it?", ToolCalls: []scripted.Call{{Name: "delete_files", Arguments: []byte(`{"paths":["a"]}`)}}},
			{Text: "Done."},
		}, nil),
	}}, nil)
	must(err)
	defer loop.Stop()
	served, err := httpapi.New(httpapi.Options{Log: store, Loop: loop, AllowUnauthenticated: true})
	must(err)
	defer served.Close()
	server := httptest.NewServer(served)
	defer server.Close()

	run(server.URL, "", "tidy")
	// Output:
	// May I delete it?
	// (paused)
	// approve delete_files {"paths":["a"]}
	// Done.
	// ()
}
