// Command recovery measures how long a deployment of helixd takes until it goes
// on after something in it has died. README.md says how.
//
//	go run ./integration/recovery [-short] [-times 5] [-sessions 100000] [-only outside,leader,embedded,restart]
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

	"github.com/helixd/helixd/integration/deployment"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// options say what is measured.
type options struct {
	times    int      // how often each thing dies
	runs     int      // of the node that dies
	sessions int      // of the node that starts again
	only     []string // parts
	helixd   string   // path; empty: it is built
	dir      string   // of all data; empty: the system's temporary folder
	keep     bool
}

// part is something to measure.
type part struct {
	name string
	do   func(*bench) error
}

var parts = []part{
	{"outside", func(b *bench) error { return b.outside() }},
	{"leader", func(b *bench) error { return b.leader() }},
	{"embedded", func(b *bench) error { return b.embedded() }},
	{"restart", func(b *bench) error { return b.restart() }},
}

func main() { os.Exit(start()) }

func start() int {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	var o options
	short := flag.Bool("short", false, "each thing dies once, 12 runs, 5,000 sessions: for CI")
	only := flag.String("only", strings.Join(names, ","), "what to measure, comma-separated")
	limit := flag.Duration("limit", time.Hour, "give up after this")
	flag.IntVar(&o.times, "times", 5, "how often each thing dies")
	flag.IntVar(&o.runs, "runs", 50, "runs of the node that dies")
	flag.IntVar(&o.sessions, "sessions", 100_000, "sessions of the node that starts again")
	flag.StringVar(&o.helixd, "helixd", "", "the command to run; it is built if empty")
	flag.StringVar(&o.dir, "dir", "", "where the data goes meanwhile; the system's temporary folder if empty")
	flag.BoolVar(&o.keep, "keep", false, "keep data and logs")
	flag.Parse()
	if *short {
		o.times, o.runs, o.sessions = 1, min(o.runs, 12), min(o.sessions, 5_000)
	}
	o.only = strings.Split(*only, ",")
	wrong := func(name string) bool { return !slices.Contains(names, name) }
	if flag.NArg() > 0 || o.times < 1 || o.runs < 1 || o.sessions < 1 || slices.ContainsFunc(o.only, wrong) {
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
		fmt.Fprintln(os.Stderr, "recovery:", errors.Join(err, context.Cause(ctx)))
		return exitFailed
	}
	return 0
}

// bench is one run of the program.
type bench struct {
	options
	ctx      context.Context
	folder   string
	binaries deployment.Binaries
	tool     *tool
	report   report
	begun    int // sessions
	clusters int // of embedded servers
}

// run measures and reports. What was measured before something failed is
// reported, too.
func run(ctx context.Context, o options) (err error) {
	b := &bench{options: o, ctx: ctx}
	if b.folder, err = os.MkdirTemp(o.dir, "recovery-"); err != nil {
		return err
	}
	defer func() {
		if err == nil && !o.keep {
			os.RemoveAll(b.folder)
			return
		}
		say("data and logs are in %s", b.folder)
	}()
	if b.tool, err = startTool(); err != nil {
		return err
	}
	defer b.tool.stop()
	say("building")
	if b.binaries, err = deployment.Build(ctx, b.folder, o.helixd, slices.Contains(o.only, "outside") || slices.Contains(o.only, "leader")); err != nil {
		return err
	}
	for _, p := range parts {
		if !slices.Contains(o.only, p.name) {
			continue
		}
		if err = p.do(b); err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
			break
		}
	}
	return errors.Join(err, b.report.write(os.Stdout))
}

// dir makes a folder for a deployment.
func (b *bench) dir(name string) (string, error) {
	path := filepath.Join(b.folder, name)
	return path, os.MkdirAll(path, 0o700)
}

// say tells the watcher how far it is.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  %s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
