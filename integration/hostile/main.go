//go:build unix

// Command hostile runs two tenants against one daemon. One streams; the other
// attacks: it must learn nothing, change nothing and slow nothing down. README.md
// says what it does and what must hold.
//
//	go run ./integration/hostile [-short] [-only name,...] [-helixd path]
package main

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// options say what is run.
type options struct {
	deployment.Options
	sessions int           // that the victim streams at a time
	every    time.Duration // a session's chunk
	calm     time.Duration // of ordinary work, before the attacks
	each     time.Duration // the least that an attack lasts
	only     []string      // attacks; none: all
}

func main() { os.Exit(start()) }

func start() int {
	o := options{sessions: 50, every: 500 * time.Millisecond}
	o.Flags("each attack for a few seconds; p99 is reported, and the medians are compared")
	limit := flag.Duration("limit", 20*time.Minute, "give up after this")
	only := flag.String("only", "", "these attacks, with commas between them: "+strings.Join(attackNames(), ", "))
	flag.DurationVar(&o.calm, "calm", 30*time.Second, "how long latency is measured without attacks")
	flag.DurationVar(&o.each, "each", 20*time.Second, "the least that an attack lasts")
	flag.Parse()
	if o.Short {
		o.calm, o.each = min(o.calm, 10*time.Second), min(o.each, 5*time.Second)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	unknown := slices.ContainsFunc(o.only, func(name string) bool { return !slices.Contains(attackNames(), name) })
	if flag.NArg() > 0 || unknown || o.calm < time.Second || o.each < time.Second {
		flag.Usage()
		return deployment.ExitUsage
	}
	return o.Main("hostile", *limit, func(ctx context.Context, folder string) error { return run(ctx, o, folder) })
}
