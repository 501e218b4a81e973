package decide

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/projector"
)

// A state whose answer is not among its messages comes from a damaged fold.
// The run fails, and the daemon continues.
func TestAStepWithoutItsAnswerFailsTheRun(t *testing.T) {
	for _, at := range []int{math.MinInt, -1, 0, 1, math.MaxInt} {
		step := &projector.Step{ID: "a", Number: 1, Recorded: true, Message: at}
		tree := &projector.Tree{}
		tree.Turn = &projector.Turn{Number: 1, RunID: "r", Step: step}
		got := Decider{}.afterStep(tree, &tree.Session, &plan.Agent{}, step)
		require.Equal(t, []Effect{Fail{Code: agentloop.CodeInternal, Message: "the step's answer is not there"}}, got)
	}
}
