// Command client drives a daemon over HTTP: it starts a run that stops at a call which needs
// approval, approves the call, and follows the rest from where it was. Start `helixd dev` first.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/client"
)

func main() {
	run("http://127.0.0.1:8080", os.Getenv("HELIX_TOKEN"), fmt.Sprintf("tidy-%d", time.Now().Unix()))
}

func run(url, token, session string) {
	ctx := context.Background()
	o := &client.Options{}
	if token != "" {
		o.Token = client.StaticToken(token)
	}
	c := client.New(url, o)

	_, err := c.Start(ctx, client.StartRequest{SessionID: session, AgentType: "janitor", Messages: client.Text("Tidy up, please.")})
	must(err)
	cursor := follow(ctx, c, session, 0)

	info, err := c.Session(ctx, session)
	must(err)
	for _, call := range info.PendingToolCalls {
		fmt.Printf("approve %s %s\n", call.ToolName, call.Input)
		_, err := c.SubmitToolResult(ctx, client.Submission{
			SessionID: session, ToolCallID: call.ToolCallID, Kind: fact.SubmitApproval, Approved: true,
		})
		must(err)
	}
	_, err = c.Resume(ctx, client.ResumeRequest{SessionID: session})
	must(err)
	follow(ctx, c, session, cursor)
}

// follow prints the stream after a sequence, and returns the last sequence. The client
// reconnects by itself, and misses nothing.
func follow(ctx context.Context, c *client.Client, session string, after uint64) (cursor uint64) {
	cursor = after
	for event, err := range c.Stream(ctx, session, after) {
		must(err)
		switch e := event.(type) {
		case client.ChunkEvent:
			cursor = e.Sequence
			if t, ok := e.Chunk.(*eventlog.TextDelta); ok {
				fmt.Print(t.Delta)
			}
		case client.EndEvent:
			fmt.Printf("\n(%s)\n", e.Status)
		}
	}
	return cursor
}

func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}
