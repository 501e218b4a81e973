package projector_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// The state of a session is the fold of its records. A record that is applied
// again changes nothing.
func ExampleApply() {
	ctx, log := context.Background(), memory.New()
	base := fact.Base{SessionID: "s1", Timestamp: 1}
	var entries []eventlog.Entry
	for _, f := range []fact.Fact{
		&fact.SessionCreated{AgentType: "cook", State: json.RawMessage(`{"eggs":2}`), Base: base},
		&fact.UserMessage{MessageID: "m1", Content: "Breakfast?", Base: base},
	} {
		entry, err := eventlog.NewFact("s1", f, eventlog.Labels{})
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
