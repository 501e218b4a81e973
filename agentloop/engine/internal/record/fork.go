package record

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// FoldFork returns the state after a fork's first records.
func FoldFork(facts []Draft) (*projector.Tree, error) {
	entries, err := Entries(facts[0].Fact.(*fact.SessionForked).SessionID, facts)
	if err != nil {
		return nil, err
	}
	t := new(projector.Tree)
	for i, e := range entries {
		projector.Apply(t, eventlog.Record{Sequence: uint64(i + 1), Entry: e})
	}
	return t, nil
}
