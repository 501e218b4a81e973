// Command storm reconnects all SSE clients of two helixd nodes at once: after one node is killed,
// and after every connection is cut. README.md says what it checks and measures.
//
//	go run ./integration/storm [-clients 10000] [-short]
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// options say what is run.
type options struct {
	deployment.Options
	clients  int
	sessions int
	every    time.Duration // a session's chunk
	crowds   int           // processes of clients
	calm     time.Duration // left alone before memory is read
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == crowdArgument {
		os.Exit(crowdMain())
	}
	os.Exit(start())
}

func start() int {
	var o options
	o.Flags("500 clients, 20 sessions: for CI")
	limit := flag.Duration("limit", 30*time.Minute, "give up after this")
	flag.IntVar(&o.clients, "clients", 10_000, "SSE clients")
	flag.IntVar(&o.sessions, "sessions", 200, "that they follow")
	flag.DurationVar(&o.every, "every", 4*time.Second, "how often each session gets a chunk")
	flag.IntVar(&o.crowds, "crowds", 2, "processes that the clients are in")
	flag.Parse()
	o.calm = 10 * time.Second
	if o.Short {
		o.clients, o.sessions, o.every, o.calm = min(o.clients, 500), min(o.sessions, 20), min(o.every, time.Second), time.Second
	}
	if flag.NArg() > 0 || o.clients < 1 || o.sessions < 1 || o.every < time.Millisecond || o.crowds < 1 {
		flag.Usage()
		return deployment.ExitUsage
	}
	return o.Main("storm", *limit, func(ctx context.Context, folder string) error { return run(ctx, o, folder) })
}
