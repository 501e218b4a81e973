package drive

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// The end of a step is appended with the step's last record. If the driver decides after
// that record was folded and before the end is, it decides on the end, too: the log has one
// end of the step and of the run.
func TestAForeseenEndIsAppendedOnce(t *testing.T) {
	for _, decidedAfter := range []string{"model_turn", "step_end", "step_committed", "checkpoint_created"} {
		t.Run(decidedAfter, func(t *testing.T) {
			log := memory.New()
			defs, err := plan.Compile([]agentloop.Agent{{Name: "a", Model: scripted.New([]scripted.Turn{{Text: "never"}}, nil)}})
			require.NoError(t, err)
			clock := record.Clock{Now: time.Now, NewID: func() string { return "w" }}
			h := &Host{Clock: clock, Log: log, Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New(nil), Goroutines: new(sync.WaitGroup), Files: &files.Files{}}
			begun := append([]record.Draft{{Fact: &fact.SessionCreated{AgentType: "a", Base: clock.FactBase("s")}}},
				clock.NewRun("s", fact.ModeStart, []agentloop.Input{{Content: "go"}})...)
			entries, err := record.Entries("s", begun)
			require.NoError(t, err)
			_, err = eventlog.AppendOnce(t.Context(), log, "s", "asks", 0, entries)
			require.NoError(t, err)
			tree := new(projector.Tree)
			for rec, err := range log.Read(t.Context(), "s", 0, 0) {
				require.NoError(t, err)
				projector.Apply(tree, rec)
			}
			r := New(h, "s", tree, tree.CurrentRun().RunID, defs, func(string) *agentloop.Hooks { return nil }, nil)
			// What it decides while the append is folded it performs when the append has ended.
			decided, performed := 0, new(sync.WaitGroup)
			var errs [2]error
			r.w = eventlog.NewWriter(r.log, "s", eventlog.WriterOptions{ID: r.id, Head: tree.Head, Status: tree.StreamStatus, Observe: func(rec eventlog.Record) {
				r.observe(rec)
				if rec.Type != decidedAfter {
					return
				}
				effects, err := r.Decide()
				require.NoError(t, err)
				for _, e := range effects {
					switch e.(type) {
					case decide.CommitStep, decide.Finish:
						tk, i := r.newTask(t.Context(), e), decided
						decided++
						performed.Go(func() { errs[i] = tk.perform(e) })
					}
				}
			}})
			defer r.w.Stop()
			require.NoError(t, r.w.Claim(t.Context(), &fact.RunClaimed{RunID: r.run, Node: "n", Attempt: 1, Base: clock.FactBase("s")}))
			effects, err := r.Decide()
			require.NoError(t, err)
			require.Len(t, effects, 1)
			call := effects[0].(decide.CallModel)
			tk := r.newTask(t.Context(), call)
			a := &modelAnswer{r: tk, stepID: call.StepID, step: call.Step, calls: map[int]*callText{}, ids: map[string]bool{}}
			require.NoError(t, a.add(t.Context(), model.TextDelta{Text: "Hello."}))
			require.NoError(t, a.close(t.Context()))
			require.NoError(t, tk.flush(t.Context()))
			require.NoError(t, a.commit(t.Context(), tk.fact(&fact.ModelTurn{
				RunID: r.run, StepID: call.StepID, Step: call.Step, Model: "m", Parts: a.turnParts(fact.StopEndTurn), StopReason: fact.StopEndTurn, Base: tk.factBase(),
			})))
			performed.Wait()
			require.Positive(t, decided, "the driver has decided on an end")
			for _, err := range errs[:decided] {
				require.ErrorIs(t, err, eventlog.ErrStale)
			}
			var types []string
			for rec, err := range log.Read(t.Context(), "s", 0, 0) {
				require.NoError(t, err)
				types = append(types, rec.Type)
			}
			all := " " + strings.Join(types, " ") + " "
			for _, one := range []string{"step_end", "step_committed", "checkpoint_created", "run_ended", "stream_end"} {
				require.Equal(t, 1, strings.Count(all, " "+one+" "), all)
			}
		})
	}
}
