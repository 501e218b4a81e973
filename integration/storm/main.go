// Command storm has all SSE clients of two helixd nodes come back at once: when
// one node is killed, and when every connection is cut. README.md says what it
// checks and measures.
//
//	go run ./integration/storm [-clients 10000] [-short]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// options say what is run.
type options struct {
	clients  int
	sessions int
	every    time.Duration // a session's chunk
	crowds   int           // processes of clients
	calm     time.Duration // left alone before memory is read
	helixd   string        // path; empty: it is built
	dir      string        // of all data; empty: the system's temporary folder
	keep     bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == crowdArgument {
		os.Exit(crowdMain())
	}
	os.Exit(start())
}

func start() int {
	var o options
	short := flag.Bool("short", false, "500 clients, 20 sessions: for CI")
	limit := flag.Duration("limit", 30*time.Minute, "give up after this")
	flag.IntVar(&o.clients, "clients", 10_000, "SSE clients")
	flag.IntVar(&o.sessions, "sessions", 200, "that they follow")
	flag.DurationVar(&o.every, "every", 4*time.Second, "how often each session gets a chunk")
	flag.IntVar(&o.crowds, "crowds", 2, "processes that the clients are in")
	flag.StringVar(&o.helixd, "helixd", "", "the command to run; it is built if empty")
	flag.StringVar(&o.dir, "dir", "", "where the data goes meanwhile; the system's temporary folder if empty")
	flag.BoolVar(&o.keep, "keep", false, "keep data and logs")
	flag.Parse()
	o.calm = 10 * time.Second
	if *short {
		o.clients, o.sessions, o.every, o.calm = min(o.clients, 500), min(o.sessions, 20), min(o.every, time.Second), time.Second
	}
	if flag.NArg() > 0 || o.clients < 1 || o.sessions < 1 || o.every < time.Millisecond || o.crowds < 1 {
		flag.Usage()
		return exitUsage
	}
	if o.helixd != "" {
		o.helixd, _ = filepath.Abs(o.helixd) // fails only without a working directory
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("it took more than %s", *limit))
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "storm: FAILED:", errors.Join(err, context.Cause(ctx)))
		return exitFailed
	}
	return 0
}

// say tells the watcher how far it is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  %s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
