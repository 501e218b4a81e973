//go:build unix

// Command hostile runs two tenants against one daemon. One streams; the other
// attacks: it must learn nothing, change nothing and slow nothing down. README.md
// says what it does and what must hold.
//
//	go run ./integration/hostile [-short] [-only name,...] [-helixd path]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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

// options say what is run.
type options struct {
	sessions int           // that the victim streams at a time
	every    time.Duration // a session's chunk
	calm     time.Duration // of ordinary work, before the attacks
	each     time.Duration // the least that an attack lasts
	only     []string      // attacks; none: all
	helixd   string        // path; empty: it is built
	dir      string        // of all data; empty: the system's temporary folder
	keep     bool
	short    bool
}

func main() { os.Exit(start()) }

func start() int {
	o := options{sessions: 50, every: 500 * time.Millisecond}
	flag.BoolVar(&o.short, "short", false, "each attack for a few seconds; p99 is reported, and the medians are compared")
	limit := flag.Duration("limit", 20*time.Minute, "give up after this")
	only := flag.String("only", "", "these attacks, with commas between them: "+strings.Join(attackNames(), ", "))
	flag.DurationVar(&o.calm, "calm", 30*time.Second, "how long latency is measured without attacks")
	flag.DurationVar(&o.each, "each", 20*time.Second, "the least that an attack lasts")
	flag.StringVar(&o.helixd, "helixd", "", "the command to run; it is built if empty")
	flag.StringVar(&o.dir, "dir", "", "where the data goes meanwhile; the system's temporary folder if empty")
	flag.BoolVar(&o.keep, "keep", false, "keep data and logs")
	flag.Parse()
	if o.short {
		o.calm, o.each = min(o.calm, 10*time.Second), min(o.each, 5*time.Second)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	unknown := slices.ContainsFunc(o.only, func(name string) bool { return !slices.Contains(attackNames(), name) })
	if flag.NArg() > 0 || unknown || o.calm < time.Second || o.each < time.Second {
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
		fmt.Fprintln(os.Stderr, "hostile: FAILED:", errors.Join(err, context.Cause(ctx)))
		return exitFailed
	}
	return 0
}

// progress says who watches how far it is.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  %s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
