package projector

import (
	"iter"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// StepTime is how long a step took, from its first record to its
// last one so far, and what its model call used.
type StepTime struct {
	Turn       int             `json:"turn"`
	Step       int             `json:"step"`
	DurationMs int64           `json:"durationMs"`
	Usage      fact.TokenUsage `json:"usage"`
}

// StepTimes returns the steps of the root's conversation, oldest first, from the records
// up to t.Head that are not truncated. It leaves out a step whose answer is not among the
// records, such as the steps that a fork has copied. A step's time includes the time for
// which it waited.
func (t *Tree) StepTimes(records iter.Seq2[eventlog.Record, error]) ([]StepTime, error) {
	type step struct{ began, last int64 }
	type answer struct {
		step  *step
		usage fact.TokenUsage
	}
	steps, answers := map[string]*step{}, map[uint64]answer{} // by id, by record
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if r.Agent != t.SessionID || t.Dead.Covers(r) {
			continue
		}
		id, at, turn := stepOf(r.Entry)
		if id == "" {
			continue
		}
		if steps[id] == nil {
			steps[id] = &step{began: at}
		}
		steps[id].last = max(steps[id].last, at)
		if turn != nil {
			answers[r.Sequence] = answer{steps[id], turn.Usage}
		}
	}
	all := []StepTime{}
	for _, m := range t.Messages {
		if a := answers[m.Sequence]; a.step != nil {
			all = append(all, StepTime{Turn: m.Turn, Step: m.Step, DurationMs: max(a.step.last-a.step.began, 0), Usage: a.usage})
		}
	}
	return all, nil
}

// stepOf returns the step that a record belongs to, when the record was made, and the
// model's answer, if it is one. A record that can't be decoded belongs to no step.
func stepOf(e eventlog.Entry) (id string, at int64, answer *fact.ModelTurn) {
	switch e.Type {
	case (*eventlog.StepStart)(nil).Type(), (*eventlog.StepCommitted)(nil).Type():
		c, err := e.Chunk()
		if err != nil {
			return "", 0, nil
		}
		switch c := c.(type) {
		case *eventlog.StepStart:
			return orEmpty(c.StepID), c.Timestamp, nil
		case *eventlog.StepCommitted:
			return c.StepID, c.Timestamp, nil
		}
	case (*fact.ModelTurn)(nil).Type(), (*fact.ModelFailed)(nil).Type(), (*fact.ToolResult)(nil).Type():
		f, err := e.Fact()
		if err != nil {
			return "", 0, nil
		}
		switch f := f.(type) {
		case *fact.ModelTurn:
			return f.StepID, f.Timestamp, f
		case *fact.ModelFailed:
			return f.StepID, f.Timestamp, nil
		case *fact.ToolResult:
			return f.StepID, f.Timestamp, nil
		}
	}
	return "", 0, nil
}
