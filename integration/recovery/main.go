// Command recovery measures how soon a deployment of helixd continues after a part of it has died.
// README.md says how.
//
//	go run ./integration/recovery [-short] [-times 5] [-sessions 100000] [-only outside,leader,embedded,restart]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// options say what is measured.
type options struct {
	deployment.Options
	times    int      // how often each thing dies
	runs     int      // of the node that dies
	sessions int      // of the node that starts again
	only     []string // parts
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
	o.Flags("each thing dies once, 12 runs, 5,000 sessions: for CI")
	only := flag.String("only", strings.Join(names, ","), "what to measure, comma-separated")
	limit := flag.Duration("limit", time.Hour, "give up after this")
	flag.IntVar(&o.times, "times", 5, "how often each thing dies")
	flag.IntVar(&o.runs, "runs", 50, "runs of the node that dies")
	flag.IntVar(&o.sessions, "sessions", 100_000, "sessions of the node that starts again")
	flag.Parse()
	if o.Short {
		o.times, o.runs, o.sessions = 1, min(o.runs, 12), min(o.sessions, 5_000)
	}
	o.only = strings.Split(*only, ",")
	wrong := func(name string) bool { return !slices.Contains(names, name) }
	if flag.NArg() > 0 || o.times < 1 || o.runs < 1 || o.sessions < 1 || slices.ContainsFunc(o.only, wrong) {
		flag.Usage()
		return deployment.ExitUsage
	}
	return o.Main("recovery", *limit, func(ctx context.Context, folder string) error { return run(ctx, o, folder) })
}

// bench is one run of the program.
type bench struct {
	options
	ctx      context.Context
	folder   string
	binaries deployment.Binaries
	tool     *deployment.Service
	report   report
	begun    int // sessions
	clusters int // of embedded servers
}

// run measures and reports. What was measured before something failed is
// reported, too.
func run(ctx context.Context, o options, folder string) (err error) {
	b := &bench{options: o, ctx: ctx, folder: folder}
	if b.tool, err = deployment.Serve(http.HandlerFunc(tool)); err != nil {
		return err
	}
	defer b.tool.Stop()
	if b.binaries, err = deployment.Build(ctx, b.folder, o.Helixd, slices.Contains(o.only, "outside") || slices.Contains(o.only, "leader")); err != nil {
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

// on runs a deployment in a folder of that name. what says what it is.
func (b *bench) on(name, what string, in func(dir string) (*deployment.Deployment, error), do func(*deployment.Deployment) error) error {
	dir, err := b.dir(name)
	if err != nil {
		return err
	}
	d, err := in(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	deployment.Say("starting %s", what)
	if err := d.Start(b.ctx); err != nil {
		return err
	}
	if err := d.Streams.WaitHealthy(b.ctx); err != nil {
		return err
	}
	return do(d)
}
