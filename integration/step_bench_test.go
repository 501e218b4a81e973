package integration_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
)

// timedServer adds up how long its callers wait for the disk.
type timedServer struct {
	*embed.Server
	mu    sync.Mutex
	syncs int
	took  time.Duration
}

func (s *timedServer) Sync(ctx context.Context) error {
	began := time.Now()
	err := s.Server.Sync(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncs++
	s.took += time.Since(began)
	return err
}

// timedLog adds up how long appends take.
type timedLog struct {
	*jetstream.Log
	mu      sync.Mutex
	appends int
	records int
	took    time.Duration
}

func (l *timedLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	began := time.Now()
	last, err := l.Log.Append(ctx, session, expected, entries)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends++
	l.records += len(entries)
	l.took += time.Since(began)
	return last, err
}

// BenchmarkStep measures a step of an agent whose model and tool answer at once, with fsync on
// one node, and its parts: how long it waits for the disk, how long its appends take besides,
// and the rest, which is the loop's own. One operation is a run of 20 steps; the figures are
// medians of runs.
func BenchmarkStep(b *testing.B) {
	const steps = 20
	srv, nc := embedtest.Start(b, embed.Options{GroupSync: true})
	timed := &timedServer{Server: srv}
	plain := jetstreamtest.Open(b, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: timed})
	log := &timedLog{Log: plain}
	turns := make([]scripted.Turn, steps)
	for i := range turns[:steps-1] {
		turns[i] = scripted.Turn{Text: "I look at it.", ToolCalls: []scripted.Call{{Name: "look"}}}
	}
	turns[steps-1].Text = "That is all."
	look := agentloop.NewTool("look", "Looks.", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "seen", nil })
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "walker", Model: scripted.New(turns, &scripted.Options{Words: 100}), Tools: []agentloop.Tool{look}, MaxSteps: steps + 1,
	}}, nil)
	require.NoError(b, err)
	b.Cleanup(loop.Stop)

	var whole, disk, appends []float64
	perStep := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 / steps }
	var n int
	for b.Loop() {
		n++
		timed.took, log.took, log.appends, log.records, timed.syncs = 0, 0, 0, 0, 0
		began := time.Now()
		run, err := loop.Execute(b.Context(), engine.StartRequest{
			SessionID: fmt.Sprint("s", n), AgentType: "walker", Messages: []agentloop.Input{{Content: "go"}},
		})
		require.NoError(b, err)
		result, err := run.Result(b.Context())
		require.NoError(b, err)
		require.Equal(b, "completed", string(result.Status))
		whole = append(whole, perStep(time.Since(began)))
		disk, appends = append(disk, perStep(timed.took)), append(appends, perStep(log.took-timed.took))
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(median(whole), "ms/step")
	b.ReportMetric(median(disk), "disk-ms/step")
	b.ReportMetric(median(appends), "append-ms/step")
	b.ReportMetric(float64(log.appends)/steps, "appends/step")
	b.ReportMetric(float64(log.records)/steps, "records/step")
}
