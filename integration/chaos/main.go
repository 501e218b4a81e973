//go:build unix

// Command chaos breaks nodes of helixd at random while sessions stream, and checks the result
// against helixd's guarantees. README.md says how.
//
//	go run ./integration/chaos -seed 7 -nodes 3 -sessions 200 -for 10m
//	go run ./integration/chaos -nodes 1 -faults power -short
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

// around bounds what a run takes beside the time of its faults: to build, to
// start, to become idle, to check.
const around = 12 * time.Minute

// options say what is done to what.
type options struct {
	deployment.Options
	seed       uint64
	nodes      int
	sessions   int
	span       time.Duration // with load and faults
	faults     []string
	durability string   // of one node
	plan       bool     // only print the faults
	from       string   // a commit or a program: nodes are upgraded from it, and nothing else is broken
	story      []string // what an operator does, in place of faults
}

func main() { os.Exit(start()) }

func start() int {
	var o options
	o.Flags("fewer sessions, about a minute: for CI")
	faults := flag.String("faults", "", "what to break, comma-separated, of "+strings.Join(kinds, ", ")+
		"; with one node "+strings.Join(kindsOfOne, ", ")+" (default: kill), with more all but power")
	story := flag.String("story", "", "what its operator does to the deployment, comma-separated, of "+strings.Join(chapters, ", ")+", in place of faults")
	flag.Uint64Var(&o.seed, "seed", 0, "of everything that is drawn; 0: another one each time")
	flag.IntVar(&o.nodes, "nodes", 3, "1, 3 or 5")
	flag.IntVar(&o.sessions, "sessions", 200, "at a time: half are agents' runs, half are outside producers'")
	flag.DurationVar(&o.span, "for", 10*time.Minute, "how long to break things")
	flag.StringVar(&o.durability, "durability", "fsync", "of one node; with interval=… a power loss is expected to take what was acknowledged")
	flag.StringVar(&o.from, "from", "", "a commit of an earlier version, or a path of its helixd: the nodes begin with it and are upgraded one after the other, and one goes back for a while; in place of faults")
	flag.BoolVar(&o.plan, "plan", false, "print what would be broken when, and end")
	flag.Parse()
	if o.Short {
		o.sessions, o.span = min(o.sessions, 24), min(o.span, time.Duration(15+10*o.nodes)*time.Second)
		if o.from != "" { // each step waits until a node is ready
			o.sessions, o.span = min(o.sessions, 12), min(o.span, 15*time.Second)
		}
	}
	o.seed = cmp.Or(o.seed, uint64(time.Now().UnixNano())%1_000_000_000)
	switch {
	case o.from != "":
		o.faults = []string{kindUpgrade}
	case *story != "":
		o.story = strings.Split(*story, ",")
	case *faults != "":
		o.faults = strings.Split(*faults, ",")
	case o.nodes == 1:
		o.faults = []string{kindKill}
	default:
		o.faults = slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == kindPower })
	}
	allowed := kinds
	if o.nodes == 1 {
		allowed = kindsOfOne
	}
	wrong := func(k string) bool { return !slices.Contains(allowed, k) || k == kindPower && o.nodes > 1 }
	if o.from != "" {
		wrong = func(string) bool { return *faults != "" || o.plan || o.nodes == 1 }
	}
	if flag.NArg() > 0 || !slices.Contains([]int{1, 3, 5}, o.nodes) || o.sessions < 2 || o.span < time.Second || slices.ContainsFunc(o.faults, wrong) || !tellable(o) {
		flag.Usage()
		return deployment.ExitUsage
	}
	if o.plan {
		for _, f := range plan(o) {
			fmt.Println(f)
		}
		return 0
	}
	return o.Main("chaos", around+2*o.span, func(ctx context.Context, folder string) error {
		if err := try(ctx, o, folder); err != nil {
			return fmt.Errorf("seed %d: %w", o.seed, err)
		}
		return nil
	})
}
