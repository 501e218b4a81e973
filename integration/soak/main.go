//go:build unix

// Command soak keeps a daemon under a steady load, and says whether its memory,
// its goroutines and its files stay at their level, and whether a record was lost
// or repeated.
//
//	go run ./integration/soak [-short] [-for 30m] [-sessions 300] [-seed 7] [-helixd path]
//	go run ./integration/soak -for 1m -inject clients
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// around bounds what a run takes beside its load: to build, to start, to come to
// rest, to check.
const around = 10 * time.Minute

// options say what is done for how long.
type options struct {
	span     time.Duration // with load
	sessions int           // at a time
	seed     uint64
	binary   string // helixd; empty: it is built
	dir      string // of all data; empty: the system's temporary folder
	keep     bool
	inject   string // what goes wrong on purpose; empty: nothing
}

func main() { os.Exit(start()) }

func start() int {
	var o options
	short := flag.Bool("short", false, "3 minutes: for CI")
	flag.DurationVar(&o.span, "for", 30*time.Minute, "how long the load lasts")
	flag.IntVar(&o.sessions, "sessions", 300, "at a time")
	flag.Uint64Var(&o.seed, "seed", 0, "of everything that is drawn; 0: another one each time")
	flag.StringVar(&o.binary, "helixd", "", "the command to run; it is built if empty")
	flag.StringVar(&o.dir, "dir", "", "where the data goes; the system's temporary folder if empty")
	flag.BoolVar(&o.keep, "keep", false, "keep data and logs though all is well")
	flag.StringVar(&o.inject, "inject", "", "what goes wrong on purpose, and must be noticed: "+strings.Join(injections, ", "))
	flag.Parse()
	if *short {
		o.span = min(o.span, 3*time.Minute)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	if flag.NArg() > 0 || o.sessions < 10 || o.span < 20*time.Second || o.inject != "" && !slices.Contains(injections, o.inject) {
		flag.Usage()
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, around+o.span, fmt.Errorf("the run took more than %s", around+o.span))
	defer cancel()
	err := run(ctx, o)
	if o.inject != "" {
		err = o.noticed(err)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: FAILED, seed %d: %v\n", o.seed, errors.Join(err, context.Cause(ctx)))
		return exitFailed
	}
	return 0
}
