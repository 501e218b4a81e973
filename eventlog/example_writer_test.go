package eventlog_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/eventlog/stream"
)

// The last claim holds a session. A writer with an older claim is refused, and has written nothing
// after the newer claim.
func ExampleWriter() {
	ctx, log := context.Background(), memory.New()
	claim := func(id string, head uint64) *eventlog.Writer {
		w := eventlog.NewWriter(log, "s1", eventlog.WriterOptions{ID: id, Head: head})
		err := w.Claim(ctx, &fact.RunClaimed{
			RunID: "run-1", Node: id, Attempt: 1, Base: fact.Base{SessionID: "s1", Timestamp: 1},
		})
		if err != nil {
			panic(err)
		}
		return w
	}
	say := func(w *eventlog.Writer, text string) error {
		entry, err := eventlog.NewChunk(&eventlog.TextDelta{
			Delta: text, Base: eventlog.Base{AgentID: "s1", AgentType: "poet", Timestamp: 1},
		}, eventlog.Labels{})
		if err != nil {
			return err
		}
		return w.Append(ctx, entry)
	}

	first := claim("node-1", 0)
	fmt.Println(say(first, "Roses"))
	second := claim("node-2", 2) // has read the records up to 2
	fmt.Println(errors.Is(say(first, "are blue"), eventlog.ErrSuperseded))
	fmt.Println(say(second, " are red"))
	fmt.Println(stream.CollectText(eventlog.Chunks(log.Read(ctx, "s1", 0, 0))))
	// Output:
	// <nil>
	// true
	// <nil>
	// Roses are red <nil>
}
