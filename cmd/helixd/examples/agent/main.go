// Command agent is a Go program that runs an agent with its own tool, with NATS inside the
// process, and follows the run from its log.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/stream"
	"github.com/helixd/helixd/snapshot"
)

func main() { run("./helix-data", fmt.Sprintf("greet-%d", time.Now().Unix())) }

func run(dir, session string) {
	ctx := context.Background()
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
		Model: scripted.New([]scripted.Turn{ // needs no key; anthropic.New and openai.New call real models
			{ToolCalls: []scripted.Call{{Name: "greet", Arguments: []byte(`{"name":"Ada"}`)}}},
			{Text: "I have greeted Ada."},
		}, nil),
	}}, nil)
	must(err)
	defer loop.Stop()

	_, err = loop.Start(ctx, engine.StartRequest{
		SessionID: session, AgentType: "greeter", Messages: []agentloop.Input{{Content: "Greet Ada."}},
	})
	must(err)
	for record, err := range store.Follow(ctx, session, 0) {
		must(err)
		if record.Kind == eventlog.KindFact && record.Type == "stream_end" {
			break
		}
	}
	text, err := stream.CollectText(eventlog.Chunks(eventlog.Effective(ctx, store, session, 0, 0)))
	must(err)
	fmt.Println(text)
	tree, err := snapshot.New(store, nil).Head(ctx, session)
	must(err)
	fmt.Println(tree.Status, tree.CustomState.String())
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
