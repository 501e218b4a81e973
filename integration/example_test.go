package integration_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

// A Go program that runs an agent with NATS inside, and follows its stream.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "helix")
	must(err)
	defer os.RemoveAll(dir)

	srv, err := embed.Start(ctx, embed.Options{DataDir: dir})
	must(err)
	defer srv.Stop()
	nc, err := srv.Connect()
	must(err)
	defer nc.Close()
	store, err := jetstream.Open(ctx, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync})
	must(err)
	defer store.Close()

	type state struct {
		Greeted []string `json:"greeted"`
	}
	greet := agentloop.NewTool("greet", "Greets somebody.",
		func(_ context.Context, c *agentloop.Call, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "greeted", agentloop.UpdateState(c, func(s *state) error {
				s.Greeted = append(s.Greeted, in.Name)
				return nil
			})
		})
	loop, err := engine.New(store, []agentloop.Agent{{
		Name: "greeter", Tools: []agentloop.Tool{greet},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{Name: "greet", Arguments: []byte(`{"name":"Ada"}`)}}},
			{Text: "I have greeted Ada."},
		}, nil),
	}}, nil)
	must(err)
	defer loop.Stop()

	_, err = loop.Start(ctx, engine.StartRequest{
		SessionID: "s1", AgentType: "greeter", Messages: []agentloop.Input{{Content: "Greet Ada."}},
	})
	must(err)
	for record, err := range store.Follow(ctx, "s1", 0) {
		must(err)
		if record.Kind == eventlog.KindFact && record.Type == "stream_end" {
			break
		}
	}
	text, err := eventlog.CollectText(eventlog.Chunks(eventlog.Effective(ctx, store, "s1", 0, 0)))
	must(err)
	fmt.Println(text)
	tree, err := snapshot.New(store, nil).Head(ctx, "s1")
	must(err)
	fmt.Println(tree.Status, tree.CustomState.String())
	// Output:
	// I have greeted Ada.
	// completed {"greeted":["Ada"]}
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
