package checker

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/integration/evidence"
	"github.com/helixd/helixd/projector"
)

// rightEnd checks that an agent's session has ended like one that was left
// alone. l.mu is held.
func (c *Checker) rightEnd(l *ledger, tree *projector.Tree) error {
	if len(tree.Parked) > 0 {
		return evidence.Wrong([]uint64{tree.Parked[0].Sequence}, "a record can't be folded: %+v", tree.Parked[0])
	}
	want, ok := c.calm[l.agent]
	if !ok || strings.HasPrefix(l.session, "calm-") {
		return nil
	}
	if tree.Error != nil && tree.Error.Code == agentloop.CodePoisoned && c.deaths.Load() >= agentloop.MaxFruitlessClaims {
		c.Note("a run that was given up since its nodes died", "%s", l.session)
		return nil
	}
	if tree.Status == projector.SessionFailed {
		return evidence.Wrong(nil, "it has failed: %s: %s", tree.Error.Code, tree.Error.Message)
	}
	if tree.Status != projector.SessionCompleted {
		return evidence.Wrong(nil, "it is %s", tree.Status)
	}
	if l.stopped { // the stop truncates what was being said, and the model says it again
		return nil
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	var state map[string]any
	if err := json.Unmarshal(raw, &state); err != nil {
		return err
	}
	if got := strings.ReplaceAll(outcomeOf(state), l.session, "SESSION"); got != want {
		return evidence.Wrong(nil, "it has not ended like a session that was left alone: %s", evidence.Difference([]byte(got), []byte(want)))
	}
	return nil
}

// outcomeOf leaves out of a tree's state what a crash may change: times,
// sequences, and the runs that it took.
func outcomeOf(tree map[string]any) string {
	sessions := map[string]any{"": tree}
	if children, ok := tree["children"].(map[string]any); ok {
		maps.Copy(sessions, children)
	}
	out := map[string]any{}
	for id, s := range sessions {
		state := s.(map[string]any)
		kept := map[string]any{}
		for _, key := range []string{"status", "streamStatus", "customState", "output", "stepCount", "turnCount", "turn"} {
			kept[key] = state[key]
		}
		messages, _ := state["messages"].([]any)
		for _, m := range messages {
			message := m.(map[string]any)
			delete(message, "timestamp")
			delete(message, "sequence")
			if denial, ok := message["denial"].(map[string]any); ok {
				delete(denial, "approvalId") // of the run that asked
			}
		}
		kept["messages"] = messages
		checkpoints, _ := state["checkpoints"].([]any)
		kept["checkpoints"] = len(checkpoints)
		out[id] = kept
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // it was JSON
	}
	return string(raw)
}
