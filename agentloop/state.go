package agentloop

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
)

// Updater is what may change the custom state: a [*Call] or a [*HookContext].
type Updater interface{ update(u patch.Update) error }

// UpdateState changes the custom state through a T: f gets the state and
// changes it; members that T does not have stay as they are. Each update is
// one state_patch chunk. Updates become final, and visible to others, with
// the call's result; if the call fails they are dropped. f must be pure: it
// runs again when other calls have committed in between.
//
// A hook's update is final at once, and f runs again until nothing has come in
// between. It fails if the stream has ended.
func UpdateState[T any](c Updater, f func(*T) error) error {
	return c.update(func(state json.RawMessage) ([]eventlog.PatchOp, error) {
		var v T
		if err := json.Unmarshal(state, &v); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		before, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if err := f(&v); err != nil {
			return nil, err
		}
		after, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		return patch.Diff(state, before, after)
	})
}
