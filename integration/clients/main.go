// Command clients measures what a daemon's SSE clients get: how soon after its
// append a chunk is there, and what each client costs. README.md says how.
//
//	go run ./integration/clients [-short] [-durability interval=1s] [-by producers] [-json]
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// setUp bounds what a run takes beside its span: to build, to begin and to end
// all sessions.
const setUp = 8 * time.Minute

// options say what is measured.
type options struct {
	deployment.Options
	clients    int           // idle ones, and as many active ones
	rate       float64       // chunks/s of each active client's session
	warm, span time.Duration // unmeasured, then measured
	by         string        // who appends
	durability string
	log        string // file for what the daemon says, its goroutines at the end too; empty: none
}

// Who appends.
const (
	byAgents    = "agents"    // runs of the daemon, whose model streams at the pace
	byProducers = "producers" // POST /sessions/{id}/chunks, one chunk a request
)

func main() { os.Exit(start()) }

func start() int {
	var o options
	o.Flags("100 clients of each kind, 5 s: for CI")
	asJSON := flag.Bool("json", false, "print JSON instead of Markdown")
	flag.IntVar(&o.clients, "clients", 500, "idle clients, and as many active ones")
	flag.Float64Var(&o.rate, "rate", 2, "chunks/s of each active client's session")
	flag.DurationVar(&o.span, "span", time.Minute, "how long to measure")
	flag.StringVar(&o.by, "by", byAgents, "who appends: "+byAgents+" (the daemon's own runs) or "+byProducers+" (POST …/chunks)")
	flag.StringVar(&o.durability, "durability", "fsync", "the daemon's: fsync or interval=DURATION")
	flag.StringVar(&o.log, "log", "", "file for the daemon's log, its garbage collections and its goroutines at the end")
	flag.Parse()
	o.warm = 3 * time.Second
	if o.Short {
		o.warm, o.span, o.clients = time.Second, 5*time.Second, min(o.clients, 100)
	}
	if flag.NArg() > 0 || o.clients < 1 || o.rate <= 0 || o.span < time.Second || o.by != byAgents && o.by != byProducers {
		flag.Usage()
		return deployment.ExitUsage
	}
	return o.Main("clients", setUp+o.warm+o.span, func(ctx context.Context, folder string) error {
		report, err := measure(ctx, o, folder)
		switch {
		case err != nil:
			return err
		case *asJSON:
			return report.writeJSON(os.Stdout)
		}
		return report.writeMarkdown(os.Stdout)
	})
}
