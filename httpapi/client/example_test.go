package client_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/client"
)

// A session is started, followed, and read again from its log.
func Example() {
	url, stop := serve()
	defer stop()
	ctx := context.Background()
	c := client.New(url, &client.Options{Token: client.StaticToken("secret")})

	_, err := c.Start(ctx, client.StartRequest{SessionID: "tour/1", AgentType: "guide", Messages: client.Text("Where to?")})
	if err != nil {
		panic(err)
	}
	for event, err := range c.Stream(ctx, "tour/1", 0) {
		if err != nil {
			panic(err)
		}
		switch e := event.(type) {
		case client.ChunkEvent:
			if text, ok := e.Chunk.(*eventlog.TextDelta); ok {
				fmt.Println("text:", text.Delta)
			}
		case client.EndEvent:
			fmt.Println("output:", string(e.Output))
		}
	}
	session, err := c.Session(ctx, "tour/1")
	if err != nil {
		panic(err)
	}
	fmt.Println(session.Status, session.Counts.Messages, "messages")
	// Output:
	// text: To the sea.
	// output: "To the sea."
	// completed 2 messages
}

// serve is a helixd with an agent named guide.
func serve() (url string, stop func()) {
	log := memory.New() // in earnest, eventlog/jetstream
	loop, err := engine.New(log, []agentloop.Agent{
		{Name: "guide", Model: scripted.New([]scripted.Turn{{Text: "To the sea."}}, nil)},
	}, nil)
	if err != nil {
		panic(err)
	}
	api, err := httpapi.New(httpapi.Options{Log: log, Loop: loop, Auth: httpapi.BearerTokens([]httpapi.Token{
		{Token: "secret", Operations: []string{"*"}, Sessions: []string{"tour/*"}},
	})})
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(api)
	return srv.URL, func() {
		loop.Stop()
		api.Close()
		srv.Close()
	}
}
