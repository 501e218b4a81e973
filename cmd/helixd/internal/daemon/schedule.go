package daemon

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

const (
	// jobTimeout bounds one run of a job.
	jobTimeout = time.Hour
	// jobJitter is the share of a job's interval by which it is put off at most,
	// so that the nodes of many deployments don't all begin at once.
	jobJitter = 0.1
)

// job is something that one node of all does now and then.
type job struct {
	name     string
	every    time.Duration // 0: never
	eachNode bool          // and not only one of all
	// run does it, and returns what to log of it; nil: nothing was to be done.
	run func(ctx context.Context) ([]slog.Attr, error)
}

// startSchedule does jobs while first says that this node is the one to do so,
// and returns how to stop, which waits. A job that is due while it still runs
// is left out.
func startSchedule(jobs []job, first func() bool, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, j := range jobs {
		if j.every > 0 {
			wg.Go(func() { j.repeat(ctx, first, log) })
		}
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func (j job) repeat(ctx context.Context, first func() bool, log *slog.Logger) {
	for eventlog.Sleep(ctx, j.every+time.Duration(rand.Float64()*jobJitter*float64(j.every))) == nil {
		if j.eachNode || first() {
			j.once(ctx, log)
		}
	}
}

func (j job) once(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	began := time.Now()
	attrs, err := j.run(ctx)
	level := slog.LevelInfo
	if attrs == nil {
		level = slog.LevelDebug
	}
	attrs = append([]slog.Attr{slog.String("job", j.name), slog.Duration("took", time.Since(began))}, attrs...)
	switch {
	case ctx.Err() == context.Canceled: // the node stops; another one continues with it
	case err != nil:
		log.LogAttrs(ctx, slog.LevelError, "scheduled job failed", append(attrs, slog.Any("error", err))...)
	default:
		log.LogAttrs(ctx, level, "scheduled job done", attrs...)
	}
}
