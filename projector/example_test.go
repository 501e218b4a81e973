package projector_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// The state of a session is the fold of its records. A record that is applied
// again changes nothing.
func ExampleApply() {
	ctx, log := context.Background(), memory.New()
	base := eventlog.FactBase{SessionID: "s1", Timestamp: 1}
	var entries []eventlog.Entry
	for _, fact := range []eventlog.Fact{
		&eventlog.SessionCreated{AgentType: "cook", State: json.RawMessage(`{"eggs":2}`), FactBase: base},
		&eventlog.UserMessage{MessageID: "m1", Content: "Breakfast?", FactBase: base},
	} {
		entry, err := eventlog.NewFact("s1", fact, eventlog.Labels{})
		if err != nil {
			panic(err)
		}
		entries = append(entries, entry)
	}
	if _, err := log.Append(ctx, "s1", 0, entries); err != nil {
		panic(err)
	}

	tree := new(projector.Tree)
	for range 2 {
		for record, err := range log.Read(ctx, "s1", 0, 0) {
			if err != nil {
				panic(err)
			}
			projector.Apply(tree, record)
		}
		fmt.Println(tree.Head, tree.AgentType, tree.CustomState.String(), tree.Messages[0].Content, len(tree.Messages))
	}
	// Output:
	// 2 cook {"eggs":2} Breakfast? 1
	// 2 cook {"eggs":2} Breakfast? 1
}
