package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a claimed writer on a log in memory that can be held up.
type desk struct {
	*eventlog.Writer
	t    *testing.T
	log  *memory.Log
	gate *logtest.Gate
}

func newDesk(t *testing.T, o eventlog.WriterOptions) *desk {
	t.Helper()
	log := memory.New()
	gate := &logtest.Gate{Log: log}
	d := newDeskOn(t, log, gate, o)
	d.gate = gate
	return d
}

// newDeskOn has the writer append through a decorated log.
func newDeskOn(t *testing.T, log *memory.Log, through eventlog.Log, o eventlog.WriterOptions) *desk {
	t.Helper()
	o.ID = "w"
	d := &desk{t: t, log: log, Writer: eventlog.NewWriter(through, "s", o)}
	t.Cleanup(d.Stop)
	require.NoError(t, d.Claim(t.Context(), &fact.RunClaimed{
		RunID: "run-1", Node: "n", Attempt: 1, Base: fact.Base{SessionID: "s", Timestamp: 1},
	}))
	return d
}

// stuck begins an append that is held up, so that all others wait.
func (d *desk) stuck() {
	d.t.Helper()
	came := d.gate.Shut()
	require.NoError(d.t, d.Write(d.t.Context(), logtest.Text("s", "in flight;")))
	<-came
}

// text is what the log says, all deltas in one.
func (d *desk) text() string { return strings.Join(d.texts(), "") }

func (d *desk) texts() (out []string) {
	d.t.Helper()
	for r, err := range d.log.Read(context.Background(), "s", 0, 0) {
		require.NoError(d.t, err)
		if r.Kind == eventlog.KindChunk {
			c, err := r.Chunk()
			require.NoError(d.t, err)
			if c, ok := c.(*eventlog.TextDelta); ok {
				out = append(out, c.Delta)
			}
		}
	}
	return out
}

// later makes a call in a goroutine and waits until it stands still.
func later(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	synctest.Wait()
	return result
}

func TestWriteReturnsWhileTheLogIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		for i := range 100 {
			require.NoError(t, d.Write(t.Context(), logtest.Text("s", fmt.Sprint(i, ","))))
		}
		flushed := later(func() error { return d.Flush(t.Context()) })
		require.Empty(t, flushed)
		require.Empty(t, d.text())
		d.gate.Open()
		require.NoError(t, <-flushed)
		require.Len(t, d.texts(), 2, "what waited is one record")
		require.Contains(t, d.text(), "in flight;0,1,2,")
		require.NoError(t, d.Flush(t.Context()), "nothing waits")
	})
}

func TestAnAppendThatLeavesTheQueueIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		ctx, cancel := context.WithCancelCause(t.Context())
		append1 := later(func() error { return d.Append(ctx, logtest.Text("s", "left")) })
		append2 := later(func() error { return d.Append(t.Context(), logtest.Text("s", "stays")) })
		gone := errors.New("gone")
		cancel(gone)
		require.Equal(t, gone, <-append1)
		require.Equal(t, gone, d.Append(ctx, logtest.Text("s", "never came")))
		require.Equal(t, gone, d.Write(ctx, logtest.Text("s", "never came")))
		flushed := later(func() error { return d.Flush(ctx) })
		require.Equal(t, gone, <-flushed)
		d.gate.Open()
		require.NoError(t, <-append2)
		require.Equal(t, "in flight;stays", d.text())
	})
}

// unanswered is a log that says nothing of an append once its context ends.
type unanswered struct{ eventlog.Log }

func (l unanswered) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := l.Log.Append(ctx, session, expected, entries)
	if ctx.Err() != nil {
		return 0, eventlog.ErrOutcomeUnknown
	}
	return last, err
}

func TestAnAppendThatLeavesInFlightBreaksTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		gate := &logtest.Gate{Log: log}
		d := newDeskOn(t, log, unanswered{gate}, eventlog.WriterOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		gate.Shut()
		sent := later(func() error { return d.Append(ctx, logtest.Text("s", "sent")) })
		queued := later(func() error { return d.Append(t.Context(), logtest.Text("s", "queued")) })
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "written")))
		cancel()
		err := <-sent
		require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, <-queued, eventlog.ErrWriterBroken)
		require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrWriterBroken)
		require.ErrorIs(t, d.Write(t.Context(), logtest.Text("s", "later")), eventlog.ErrWriterBroken)
		gate.Open()
		require.Empty(t, d.text())
	})
}

func TestWhoGivesUpBeforeAnythingIsSentTakesNothingOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		ctx, cancel := context.WithCancel(t.Context())
		one := later(func() error { return d.Append(t.Context(), logtest.Text("s", "one;")) })
		two := later(func() error { return d.Append(ctx, logtest.Text("s", "two;")) })
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "three;")))
		d.gate.Shut() // the gate refuses a caller that leaves before it
		synctest.Wait()
		require.Equal(t, "in flight;", d.text())
		cancel()
		require.ErrorIs(t, <-two, context.Canceled)
		synctest.Wait()
		d.gate.Open()
		require.NoError(t, <-one)
		require.NoError(t, d.Flush(t.Context()))
		require.Equal(t, "in flight;one;three;", d.text())
	})
}

func TestWriteWaitsForRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		fill int // writes that have room
		size int // of their texts
	}{
		"records": {eventlog.MaxQueuedRecords, 1},
		"bytes":   {10, eventlog.MaxQueuedBytes/10 - 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, eventlog.WriterOptions{NoMerge: true})
				d.stuck()
				big := strings.Repeat("x", tc.size)
				require.NoError(t, d.Write(t.Context(), logtest.Text("s", big)))
				for range tc.fill - 1 {
					queued, err := d.TryWrite(logtest.Text("s", big))
					require.NoError(t, err)
					require.True(t, queued)
				}
				queued, err := d.TryWrite(logtest.Text("s", big))
				require.NoError(t, err)
				require.False(t, queued, "there is no room")
				ctx, cancel := context.WithCancelCause(t.Context())
				waits := later(func() error { return d.Write(t.Context(), logtest.Text("s", big)) })
				leaves := later(func() error { return d.Write(ctx, logtest.Text("s", big)) })
				require.Empty(t, waits)
				gone := errors.New("gone")
				cancel(gone)
				require.Equal(t, gone, <-leaves)
				appended := later(func() error { return d.Append(t.Context(), logtest.Text("s", "end")) })
				d.gate.Open()
				require.NoError(t, <-waits)
				require.NoError(t, <-appended)
				require.NoError(t, d.Flush(t.Context()))
				require.Len(t, d.texts(), tc.fill+3)
				for _, n := range d.gate.Sizes() {
					require.LessOrEqual(t, n, eventlog.MaxAppendRecords)
				}
			})
		})
	}
	t.Run("a write that is larger than the queue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, eventlog.WriterOptions{})
			d.stuck()
			huge := strings.Repeat("x", eventlog.MaxQueuedBytes)
			require.NoError(t, d.Write(t.Context(), logtest.Text("s", "small;")))
			waits := later(func() error { return d.Write(t.Context(), logtest.Text("s", huge)) })
			require.Empty(t, waits)
			d.gate.Open()
			require.NoError(t, <-waits)
			require.NoError(t, d.Flush(t.Context()))
			require.Equal(t, "in flight;small;"+huge, d.text())
		})
	})
}

func TestBatchesAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		mega := logtest.Text("s", strings.Repeat("x", 1<<20))
		var results []<-chan error
		for range 10 {
			results = append(results, later(func() error { return d.Append(t.Context(), mega) }))
		}
		d.gate.Open()
		for _, r := range results {
			require.NoError(t, <-r)
		}
		require.Equal(t, []int{1, 1, 3, 3, 3, 1}, d.gate.Sizes())
	})
}

func TestTooLargeIsToldAtOnce(t *testing.T) {
	d := newDesk(t, eventlog.WriterOptions{})
	huge := logtest.Text("s", strings.Repeat("x", memory.MaxRecordBytes))
	try := func(_ context.Context, entries ...eventlog.Entry) error {
		queued, err := d.TryWrite(entries...)
		require.Equal(t, err == nil, queued)
		return err
	}
	for _, call := range []func(context.Context, ...eventlog.Entry) error{d.Append, d.Write, try} {
		require.ErrorIs(t, call(t.Context(), logtest.Text("s", "a"), huge), eventlog.ErrTooLarge)
		require.ErrorIs(t, call(t.Context(), make([]eventlog.Entry, eventlog.MaxAppendRecords+1)...), eventlog.ErrTooLarge)
		require.NoError(t, call(t.Context()), "nothing is no error")
	}
	require.NoError(t, d.Flush(t.Context()))
	require.Empty(t, d.text())
}

func TestASupersededWriterWritesNothingOfWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, eventlog.WriterOptions{})
		d.stuck()
		queued := later(func() error { return d.Append(t.Context(), logtest.Text("s", "queued")) })
		for range eventlog.MaxQueuedRecords - 1 {
			require.NoError(t, d.Write(t.Context(), logtest.Text("s", "written")))
		}
		waits := later(func() error { return d.Write(t.Context(), logtest.Text("s", "waiting")) })
		head, err := d.log.Head(t.Context(), "s")
		require.NoError(t, err)
		_, err = eventlog.AppendOnce(t.Context(), d.log, "s", "other", head, []eventlog.Entry{
			logtest.Fact("s", &fact.RunClaimed{RunID: "run-1", Node: "other", Attempt: 2, Base: fact.Base{SessionID: "s", Timestamp: 1}}),
		})
		require.NoError(t, err)
		d.gate.Open()
		require.ErrorIs(t, <-queued, eventlog.ErrSuperseded)
		require.ErrorIs(t, <-waits, eventlog.ErrSuperseded)
		for range 2 {
			require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrSuperseded)
			require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "later")), eventlog.ErrSuperseded)
		}
		require.Empty(t, d.text())
	})
}

// picky is a log that refuses some texts as too large, as a stream may that
// takes less than its log knows.
type picky struct{ eventlog.Log }

func (l picky) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	for _, e := range entries {
		if strings.Contains(string(e.Payload), "too large") {
			return 0, eventlog.ErrTooLarge
		}
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func TestAWriteThatFailsLeavesNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		gate := &logtest.Gate{Log: log}
		d := newDeskOn(t, log, picky{gate}, eventlog.WriterOptions{NoMerge: true})
		d.gate = gate
		d.stuck()
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "before;")))
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "too large")))
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "behind")))
		appended := later(func() error { return d.Append(t.Context(), logtest.Text("s", "appended;")) })
		alone := later(func() error { return d.Append(t.Context(), logtest.Text("s", "too large")) })
		gate.Open()
		require.NoError(t, <-appended, "an append knows of itself only")
		require.ErrorIs(t, <-alone, eventlog.ErrTooLarge)
		require.ErrorIs(t, d.Write(t.Context(), logtest.Text("s", "behind")), eventlog.ErrTooLarge)
		require.NoError(t, d.Append(t.Context(), logtest.Text("s", "more;")))
		require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrTooLarge)
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "again")), "it was told")
		require.NoError(t, d.Flush(t.Context()))
		require.Equal(t, "in flight;before;appended;more;again", d.text())
		ordinal := uint64(0)
		for r, err := range log.Read(t.Context(), "s", 0, 0) {
			require.NoError(t, err)
			ordinal++
			require.Equal(t, ordinal, r.Ordinal)
		}
	})
}

func TestStopEndsTheWriter(t *testing.T) {
	for name, stop := range map[string]func(*desk, context.CancelFunc){
		"by Stop":        func(d *desk, _ context.CancelFunc) { d.Stop(); d.Stop() },
		"by its context": func(_ *desk, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				d := newDesk(t, eventlog.WriterOptions{Context: ctx})
				d.stuck()
				appended := later(func() error { return d.Append(t.Context(), logtest.Text("s", "queued")) })
				for range eventlog.MaxQueuedRecords - 1 {
					require.NoError(t, d.Write(t.Context(), logtest.Text("s", "written")))
				}
				waits := later(func() error { return d.Write(t.Context(), logtest.Text("s", "waiting")) })
				stop(d, cancel)
				require.ErrorIs(t, <-appended, eventlog.ErrWriterBroken)
				require.ErrorIs(t, <-waits, eventlog.ErrWriterBroken)
				require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "later")), eventlog.ErrWriterBroken)
				require.Error(t, d.Flush(t.Context()))
				require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrWriterBroken)
				d.gate.Open()
				synctest.Wait()
				require.Empty(t, d.text())
			})
		})
	}
}

// An observer receives a record before the call that wrote it returns.
func TestObservedBeforeReturn(t *testing.T) {
	var seen []string
	d := newDesk(t, eventlog.WriterOptions{Observe: func(r eventlog.Record) { seen = append(seen, r.Type) }})
	require.Equal(t, []string{"run_claimed"}, seen)
	for range 100 {
		require.NoError(t, d.Append(t.Context(), logtest.Text("s", "a")))
		require.Len(t, seen, 2)
		require.NoError(t, d.Write(t.Context(), logtest.Text("s", "b")))
		require.NoError(t, d.Flush(t.Context()))
		require.Len(t, seen, 3)
		seen = seen[:1]
	}
}

// gone is a log whose session has been erased.
type gone struct{ eventlog.Log }

func (gone) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	return 0, &eventlog.ConflictError{}
}

func (gone) Read(context.Context, string, uint64, uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, eventlog.ErrSessionNotFound) }
}

func TestAWriterOfAnErasedSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := eventlog.NewWriter(gone{memory.New()}, "s", eventlog.WriterOptions{ID: "w", Head: 7})
		begin := time.Now()
		require.ErrorIs(t, w.Append(t.Context(), logtest.Text("s", "a")), eventlog.ErrSessionNotFound)
		require.ErrorIs(t, w.Write(t.Context(), logtest.Text("s", "b")), eventlog.ErrSessionNotFound)
		require.Zero(t, time.Since(begin))
	})
}

func TestAnObserverThatPanicsBreaksTheWriter(t *testing.T) {
	d := newDesk(t, eventlog.WriterOptions{Observe: func(r eventlog.Record) {
		if r.Type == "text_delta" {
			panic("observed")
		}
	}})
	require.PanicsWithValue(t, "observed", func() { _ = d.Append(t.Context(), logtest.Text("s", "a")) })
	require.ErrorIs(t, d.Append(t.Context(), logtest.Text("s", "b")), eventlog.ErrWriterBroken)
	require.ErrorIs(t, d.Write(t.Context(), logtest.Text("s", "b")), eventlog.ErrWriterBroken)
	require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrWriterBroken)
	d.Stop()
}

// TestAnAppendThatWasNotSentLeavesAlone: where waiting appends go one after
// the other, one that gives up before its turn costs the others nothing.
func TestAnAppendThatWasNotSentLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memory.New()
		gate := &logtest.Gate{Log: mem}
		d := newDeskOn(t, mem, &oneByOne{gate}, eventlog.WriterOptions{})
		d.gate = gate
		d.stuck()
		ctx, cancel := context.WithCancelCause(t.Context())
		first := later(func() error { return d.Append(t.Context(), logtest.Text("s", "first;")) })
		leaves := later(func() error { return d.Append(ctx, logtest.Text("s", "leaves;")) })
		last := later(func() error { return d.Append(t.Context(), logtest.Text("s", "last;")) })
		<-gate.Shut() // the first one's
		gone := errors.New("gone")
		cancel(gone)
		require.Equal(t, gone, <-leaves, "at once, and it is known that nothing was written")
		gate.Open()
		require.NoError(t, <-first)
		require.NoError(t, <-last)
		require.NoError(t, d.Append(t.Context(), logtest.Text("s", "later")))
		require.Equal(t, "in flight;first;last;later", d.text())
	})
}

// oneByOne is a log for which a few records are quicker one by one, and which
// does not know what became of an append that was given up.
type oneByOne struct{ eventlog.Log }

func (l *oneByOne) Info() eventlog.Info {
	i := l.Log.Info()
	i.GatherFrom = 100
	return i
}

func (l *oneByOne) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := l.Log.Append(ctx, session, expected, entries)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return last, err
}

func TestFlushTellsThatTheWritersContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := newDesk(t, eventlog.WriterOptions{Context: ctx})
	require.NoError(t, d.Flush(t.Context()))
	cancel()
	require.ErrorIs(t, d.Flush(t.Context()), eventlog.ErrWriterBroken)
}
