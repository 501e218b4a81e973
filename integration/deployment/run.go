package deployment

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Options are what all programs beside this package have in common.
type Options struct {
	Short  bool
	Helixd string // path; empty: it is built
	Dir    string // of all data; empty: the system's temporary folder
	Keep   bool
}

// Flags adds the options to the program's flags; short says what -short does.
func (o *Options) Flags(short string) {
	flag.BoolVar(&o.Short, "short", false, short)
	flag.StringVar(&o.Helixd, "helixd", os.Getenv("HELIXD"), "the command to run, by default $HELIXD; it is built if empty")
	flag.StringVar(&o.Dir, "dir", "", "where the data goes; the system's temporary folder if empty")
	flag.BoolVar(&o.Keep, "keep", false, "keep data and logs though all is well")
}

// Exit codes.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// Main calls run with a new folder, which is removed afterwards if all is well. The
// context ends with a signal, and after limit. Main returns the program's exit code.
func (o Options) Main(name string, limit time.Duration, run func(ctx context.Context, folder string) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took more than %s", limit))
	defer cancel()
	folder, err := os.MkdirTemp(o.Dir, name+"-")
	if err == nil {
		if err = run(ctx, folder); err == nil && !o.Keep {
			os.RemoveAll(folder)
		} else {
			Say("data and logs are in %s", folder)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: FAILED: %v\n", name, errors.Join(err, context.Cause(ctx)))
		return ExitFailed
	}
	return 0
}

// Began is when the program began.
var Began = time.Now()

// Say prints a line on the progress of the run, with the time since it began.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%8.2fs %s\n", time.Since(Began).Seconds(), fmt.Sprintf(format, args...))
}

// Random returns a seed's random numbers for one purpose.
func Random(seed uint64, purpose string, i int) *rand.Rand {
	h := fnv.New64a()
	io.WriteString(h, purpose) // it does not fail
	return rand.New(rand.NewPCG(seed, h.Sum64()+uint64(i)))
}
