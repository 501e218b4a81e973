package memory_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// A reader that was away continues after the last sequence that it has, and then waits for what
// is appended.
func ExampleLog_Follow() {
	ctx, log := context.Background(), memory.New()
	say := func(expected uint64, text string) error {
		entry, err := eventlog.NewChunk(&eventlog.TextDelta{
			Delta: text, Base: eventlog.Base{AgentID: "s1", AgentType: "poet", Timestamp: 1},
		}, eventlog.Labels{})
		if err == nil {
			_, err = log.Append(ctx, "s1", expected, []eventlog.Entry{entry})
		}
		return err
	}
	fmt.Println(say(0, "one"), say(1, "two"))
	for record, err := range log.Follow(ctx, "s1", 1) { // has record 1
		if err != nil {
			panic(err)
		}
		fmt.Println(record.Sequence, record.Type)
		if record.Sequence == 3 {
			break
		}
		fmt.Println(say(record.Sequence, "three"))
	}
	fmt.Println(say(2, "four")) // by a writer that has not seen record 3
	// Output:
	// <nil> <nil>
	// 2 text_delta
	// <nil>
	// 3 text_delta
	// eventlog: sequence conflict: head is 3
}
