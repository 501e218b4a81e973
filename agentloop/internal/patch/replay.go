package patch

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Update returns the operations that change a custom state. It may run again on
// a newer state.
type Update func(state json.RawMessage) ([]eventlog.PatchOp, error)

// Replay applies updates to a state, which together may be as much work as is
// left. It returns the outcome, what is left then, and one patch an update that
// changes something.
func Replay(state json.RawMessage, left int64, updates []Update) (json.RawMessage, int64, [][]eventlog.PatchOp, error) {
	var patches [][]eventlog.PatchOp
	for _, u := range updates {
		ops, err := u(state)
		if err != nil {
			return nil, 0, nil, err
		}
		if len(ops) == 0 {
			continue
		}
		next, work, err := projector.Patch(state, ops, left)
		if err != nil {
			return nil, 0, nil, err
		}
		state, left, patches = next, left-work, append(patches, ops)
	}
	return state, left, patches, nil
}
