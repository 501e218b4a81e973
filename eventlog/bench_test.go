package eventlog_test

import (
	"context"
	"testing"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// instant is a log that takes everything at once and keeps nothing. If it has
// a gate, each append sends to it twice: when it begins, and before it ends.
type instant struct {
	eventlog.Log
	gate chan struct{}
}

func (l instant) Info() eventlog.Info { return eventlog.Info{MaxRecordBytes: eventlog.MaxPayload} }

func (l instant) Append(_ context.Context, _ string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if l.gate != nil {
		l.gate <- struct{}{}
		l.gate <- struct{}{}
	}
	return expected + uint64(len(entries)), nil
}

func delta() eventlog.Chunk {
	return &eventlog.TextDelta{Delta: "Hello, this is a word or two of \"text\".\n", Base: base}
}

// BenchmarkNewChunk measures making an entry of a delta and reading it back, as
// the fold does.
func BenchmarkNewChunk(b *testing.B) {
	c := delta()
	b.ReportAllocs()
	for b.Loop() {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := e.Chunk(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewFact is BenchmarkNewChunk of a fact that three observers read.
func BenchmarkNewFact(b *testing.B) {
	f := &fact.ToolResult{
		RunID: "run-1", StepID: "step-1", ToolCallID: "call-1", ToolName: "search", Result: []byte(`{"found":["a","b"]}`),
		Base: fact.Base{SessionID: "s", Timestamp: 1700000000123},
	}
	b.ReportAllocs()
	for b.Loop() {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "run-1"})
		if err != nil {
			b.Fatal(err)
		}
		for range 3 {
			if _, err := e.Fact(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkWriterAppend measures an append of one delta, made and folded, beside
// what the log does.
func BenchmarkWriterAppend(b *testing.B) {
	w := eventlog.NewWriter(instant{}, "s", eventlog.WriterOptions{ID: "w", Observe: func(r eventlog.Record) {
		if _, err := r.Chunk(); err != nil {
			b.Error(err)
		}
	}})
	defer w.Stop()
	c := delta()
	b.ReportAllocs()
	for b.Loop() {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Append(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriterMerge measures deltas that wait while an append is in flight,
// 64 at a time, and become one record. One operation is one delta.
func BenchmarkWriterMerge(b *testing.B) {
	log := instant{gate: make(chan struct{})}
	w := eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w", Observe: func(r eventlog.Record) {
		if _, err := r.Chunk(); err != nil {
			b.Error(err)
		}
	}})
	defer w.Stop()
	c := delta()
	write := func() {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
		if err == nil {
			err = w.Write(b.Context(), e)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	const waiting = 64
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= waiting {
		write()
		<-log.gate // it is in flight
		for range waiting - 1 {
			write()
		}
		<-log.gate
		<-log.gate
		<-log.gate
		if err := w.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
