package eventlog_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// A program writes its own stream. An attached reader is notified when records are truncated.
func ExampleStreams() {
	ctx := context.Background()
	streams := eventlog.NewStreams(memory.New())
	w, _ := streams.CreateWriter("s1", "s1", "poet")
	say := func(step int, text string) {
		base := eventlog.Base{AgentID: "s1", AgentType: "poet", Timestamp: 1, Step: step}
		if _, err := w.Write(ctx, &eventlog.TextDelta{Delta: text, Base: base}); err != nil {
			fmt.Println(err)
		}
	}
	say(1, "Roses")
	say(2, "rose")
	r, _ := streams.Reader(ctx, "s1")
	_, _ = streams.CleanupToStep(ctx, "s1", "s1", 1, 0)
	say(2, "are red")
	_ = streams.EndStream(ctx, "s1", nil)

	for record, err := range r.Records(ctx) {
		if cut, ok := errors.AsType[*eventlog.StreamTruncatedError](err); ok {
			fmt.Println("after step", *cut.TruncatedAtStep, "all is truncated")
			continue
		}
		fmt.Println(record.Sequence, record.Type)
	}
	fmt.Println(r.Status())
	// Output:
	// after step 1 all is truncated
	// 1 text_delta
	// 3 truncated
	// 4 text_delta
	// 5 stream_end
	// ended
}
