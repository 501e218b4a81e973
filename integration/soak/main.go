//go:build unix

// Command soak keeps a daemon under a steady load, and says whether its memory,
// its goroutines and its files stay at their level, and whether a record was lost
// or repeated.
//
//	go run ./integration/soak [-short] [-for 30m] [-sessions 300] [-seed 7] [-helixd path]
//	go run ./integration/soak -for 1m -inject clients
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// around bounds what a run takes beside its load: to build, to start, to come to
// rest, to check.
const around = 10 * time.Minute

// options say what is done for how long.
type options struct {
	deployment.Options
	span     time.Duration // with load
	sessions int           // at a time
	seed     uint64
	inject   string // what goes wrong on purpose; empty: nothing
}

func main() { os.Exit(start()) }

func start() int {
	var o options
	o.Flags("3 minutes: for CI")
	flag.DurationVar(&o.span, "for", 30*time.Minute, "how long the load lasts")
	flag.IntVar(&o.sessions, "sessions", 300, "at a time")
	flag.Uint64Var(&o.seed, "seed", 0, "of everything that is drawn; 0: another one each time")
	flag.StringVar(&o.inject, "inject", "", "what goes wrong on purpose, and must be noticed: "+strings.Join(injections, ", "))
	flag.Parse()
	if o.Short {
		o.span, o.sessions = min(o.span, 3*time.Minute), min(o.sessions, 60)
	}
	o.seed = cmp.Or(o.seed, uint64(time.Now().UnixNano())%1_000_000_000)
	if flag.NArg() > 0 || o.sessions < 10 || o.span < 20*time.Second || o.inject != "" && !slices.Contains(injections, o.inject) {
		flag.Usage()
		return deployment.ExitUsage
	}
	return o.Main("soak", around+o.span, func(ctx context.Context, folder string) error {
		err := run(ctx, o, folder)
		if o.inject != "" {
			return o.noticed(err)
		}
		if err != nil {
			return fmt.Errorf("seed %d: %w", o.seed, err)
		}
		return nil
	})
}
