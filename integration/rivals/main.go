// Command rivals measures helixd beside its alternatives: raw JetStream, Redis Streams, and over
// HTTP the Durable Streams server of npm. README.md says how.
//
//	go run . [-short] [-only name,...] [-json]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2 // also: redis-server is missing
)

// Hard limits of a whole run; it plans for less.
const (
	maxShort = 5 * time.Minute
	maxFull  = 15 * time.Minute
)

// scenario is one comparison. It checks that every system kept what it
// acknowledged, and adds rows to the report.
type scenario struct {
	name  string
	about string
	run   func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"paced", "sessions at 50 chunks/s each, due time to ack", runPaced},
	{"flat", "64 sessions, one record an append, as fast as acks come", runFlat},
	{"import", "one session takes 100,000 records", runImport},
	{"fanout", "1,000 followers on one session", runFanOut},
	{"spread", "1,000 followers over 1,000 sessions", runSpread},
	{"memory", "what an idle follower costs", runMemory},
	{"catchup", "reading a long session, and a short one among many", runCatchUp},
	{"restart", "stop and start with 200,000 sessions", runRestart},
	{"http", "producers and SSE clients over HTTP, beside the Durable Streams server of npm", runHTTP},
}

// bench is what scenarios share.
type bench struct {
	short  bool
	dir    string // of all data; removed at the end
	report *report
}

// tempDir returns a fresh folder for a server's data.
func (b *bench) tempDir(name string) (string, error) {
	return os.MkdirTemp(b.dir, name+"-")
}

// say tells the watcher how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
}

// pick returns a size of the full or the short run.
func pick[T any](b *bench, full, short T) T {
	if b.short {
		return short
	}
	return full
}

func main() { os.Exit(start()) }

func start() int {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	short := flag.Bool("short", false, "smaller sizes and spans: within a minute, for CI")
	only := flag.String("only", "", "comma-separated scenarios: "+strings.Join(names, ", "))
	asJSON := flag.Bool("json", false, "print JSON instead of Markdown")
	dir := flag.String("dir", "", "where the data goes meanwhile; the system's temporary folder if empty")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process to the file")
	flag.Parse()
	chosen := scenarios
	if *only != "" {
		wanted := strings.Split(*only, ",")
		for _, w := range wanted {
			if !slices.Contains(names, w) {
				fmt.Fprintf(os.Stderr, "rivals: no scenario %q; there are %s\n", w, strings.Join(names, ", "))
				return exitUsage
			}
		}
		chosen = slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return !slices.Contains(wanted, s.name) })
	}
	if flag.NArg() > 0 {
		flag.Usage()
		return exitUsage
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit := maxFull
	if *short {
		limit = maxShort
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the run took more than %s", limit))
	defer cancel()

	report, err := run(ctx, chosen, *dir, *short, *profile)
	switch {
	case errors.Is(err, errNoRedis):
		fmt.Fprintln(os.Stderr, "rivals:", err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(os.Stderr, "rivals:", err)
		return exitFailed
	case *asJSON:
		err = report.writeJSON(os.Stdout)
	default:
		err = report.writeMarkdown(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rivals:", err)
		return exitFailed
	}
	if len(report.Failures) > 0 {
		return exitFailed
	}
	return 0
}

// run runs the chosen scenarios. One that fails does not take the others'
// figures with it.
func run(ctx context.Context, chosen []scenario, parent string, short bool, profile string) (*report, error) {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, err
		}
		defer pprof.StopCPUProfile()
	}
	dir, err := os.MkdirTemp(parent, "rivals-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	facts, err := machineFacts(ctx, dir)
	if err != nil {
		return nil, err
	}
	b := &bench{short: short, dir: dir, report: &report{Facts: facts, Short: short}}
	begin := time.Now()
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "%s: %s (%s)\n", s.name, s.about, time.Since(begin).Round(time.Second))
		b.report.scenario = s.name
		if err := s.run(ctx, b); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return nil, fmt.Errorf("%s: %w", s.name, errors.Join(cause, err))
			}
			fmt.Fprintf(os.Stderr, "rivals: %s: %v\n", s.name, err)
			b.report.Failures = append(b.report.Failures, s.name+": "+err.Error())
		}
		// One scenario's garbage is not the next one's.
		runtime.GC()
		debug.FreeOSMemory()
	}
	b.report.Seconds = time.Since(begin).Seconds()
	return b.report, nil
}
