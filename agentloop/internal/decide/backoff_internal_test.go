package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/projector"
)

func TestPausesBetweenModelCallsDouble(t *testing.T) {
	def := &plan.Agent{Agent: agentloop.Agent{MaxSteps: 1}, MaxTries: 100}
	d := Decider{RetryDelay: time.Second, Busy: func(string) bool { return false }}
	pause := func(attempts int, retryable bool) Effect {
		tree := &projector.Tree{}
		tree.Turn = &projector.Turn{Number: 1, RunID: "r", Step: &projector.Step{
			ID: "a", Number: 1, Attempts: attempts, Failure: &projector.ModelFailure{Code: "provider_overloaded", Retryable: retryable},
		}}
		effects := d.run(tree, &tree.Session, def)
		require.Len(t, effects, 1)
		return effects[0]
	}
	for attempts, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 16 * time.Second, 6: maxRetryDelay, 99: maxRetryDelay,
	} {
		require.Equal(t, want, pause(attempts, true).(CallModel).After, "after %d attempts", attempts)
	}
	require.IsType(t, Fail{}, pause(100, true), "it gives up")
	require.IsType(t, Fail{}, pause(1, false), "what would fail again is not repeated")
}
