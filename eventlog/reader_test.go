package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// tapped counts what is asked of a log, and can break it off.
type tapped struct {
	eventlog.Log
	heads, reads int
	broken       error  // of Head
	floor        uint64 // of retention
}

func (l *tapped) Head(ctx context.Context, session string) (uint64, error) {
	l.heads++
	if l.broken != nil {
		return 0, l.broken
	}
	return l.Log.Head(ctx, session)
}

func (l *tapped) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	l.reads++
	if from < l.floor {
		return func(yield func(eventlog.Record, error) bool) {
			yield(eventlog.Record{}, &eventlog.TrimmedError{Cursor: from, Floor: l.floor})
		}
	}
	return l.Log.Read(ctx, session, from, to)
}

// put appends entries to session s.
func put(t *testing.T, log eventlog.Log, entries ...eventlog.Entry) {
	t.Helper()
	head, err := log.Head(t.Context(), "s")
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	_, err = log.Append(t.Context(), "s", head, entries)
	require.NoError(t, err)
}

func word(t *testing.T, text string) eventlog.Entry {
	t.Helper()
	e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: text, Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, eventlog.Labels{Run: "r"})
	require.NoError(t, err)
	return e
}

func factOf(t *testing.T, f fact.Fact) eventlog.Entry {
	t.Helper()
	e, err := eventlog.NewFact("s", f, eventlog.Labels{})
	require.NoError(t, err)
	return e
}

// TestReaderAsksForTheHeadOnce: what a reader costs the log.
func TestReaderAsksForTheHeadOnce(t *testing.T) {
	log := &tapped{Log: memory.New()}
	put(t, log, word(t, "1"), word(t, "2"), word(t, "3"))
	r, err := eventlog.NewReader(t.Context(), log, "s", 0)
	require.NoError(t, err)
	pull, stop := iter.Pull2(r.Records(t.Context()))
	defer stop()
	next := func() {
		t.Helper()
		_, err, ok := pull()
		require.NoError(t, err)
		require.True(t, ok)
	}
	for range 3 {
		log.heads, log.reads = 0, 0
		next()
		require.Equal(t, []int{1, 0}, []int{log.heads, log.reads}, "catching up")
	}
	for i := range 3 {
		put(t, log.Log, word(t, fmt.Sprint(i)))
		log.heads, log.reads = 0, 0
		next()
		require.Equal(t, []int{1, 0}, []int{log.heads, log.reads}, "keeping up")
	}
	put(t, log.Log, word(t, "5"))
	put(t, log.Log, word(t, "6"))
	log.heads, log.reads = 0, 0
	next()
	next()
	require.Equal(t, []int{2, 1}, []int{log.heads, log.reads}, "behind, what is new is read once")
}

// TestReaderErrorsSkipNothing: a log that fails is an error, after which the
// reader continues where it was, and returns the errors that it has to return.
func TestReaderErrorsSkipNothing(t *testing.T) {
	log := &tapped{Log: memory.New()}
	put(t, log, word(t, "a"), word(t, "b"), word(t, "c"))
	r, err := eventlog.NewReader(t.Context(), log, "s", 0)
	require.NoError(t, err)
	var got []string
	read := func() error {
		for rec, err := range r.Records(t.Context()) {
			if err != nil {
				return err
			}
			if rec.Kind == eventlog.KindFact {
				got = append(got, rec.Type)
				continue
			}
			c, err := rec.Chunk()
			require.NoError(t, err)
			got = append(got, c.(*eventlog.TextDelta).Delta)
			if len(got) == 1 {
				log.broken = errors.New("gone")
			}
		}
		return nil
	}
	require.EqualError(t, read(), "gone")
	require.Equal(t, []string{"a"}, got)
	require.EqualError(t, read(), "gone")

	log.broken = nil
	put(t, log, factOf(t, &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, AtSequence: 3, Ranges: []eventlog.Range{{AgentID: "s", From: 2, To: 2}}, Base: factBase,
	}), factOf(t, &fact.StreamEnd{StreamID: "s"}))
	log.broken = errors.New("still gone")
	require.EqualError(t, read(), "still gone")
	log.broken = nil
	var cut *eventlog.StreamTruncatedError
	require.ErrorAs(t, read(), &cut)
	require.Equal(t, &eventlog.StreamTruncatedError{Reason: eventlog.ResyncRetry, AtSequence: 3}, cut)
	require.EqualError(t, cut, "eventlog: stream truncated at sequence 3 (retry)")
	require.NoError(t, read())
	require.Equal(t, []string{"a", "c", "truncated", "stream_end"}, got)
	require.Equal(t, eventlog.StreamCompleted, r.Status())
}

// TestReaderRefusesMarkersThatItDoesNotUnderstand: without them it would show
// what is truncated.
func TestReaderRefusesMarkersThatItDoesNotUnderstand(t *testing.T) {
	for _, payload := range []string{`{"type":"truncated","ranges":5}`, `{"type":"truncated","ranges":[{"from":1,"to":1,"scope":"newer"}]}`} {
		log := memory.New()
		put(t, log, word(t, "a"))
		attached, err := eventlog.NewReader(t.Context(), log, "s", 0)
		require.NoError(t, err)
		put(t, log, eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "truncated", Agent: "s"}, Payload: []byte(payload)})
		_, err = eventlog.NewReader(t.Context(), log, "s", 0)
		require.Error(t, err)
		for range 2 {
			for _, err := range attached.Records(t.Context()) {
				require.Error(t, err)
			}
		}
		require.Zero(t, attached.Sequence())
	}
}

// TestReadersOfWhatRetentionHasLeft: a cursor above the floor is good, and the
// stream's status is that of what is left.
func TestReadersOfWhatRetentionHasLeft(t *testing.T) {
	log := &tapped{Log: memory.New()}
	put(t, log, word(t, "a"), word(t, "b"), word(t, "c"), factOf(t, &fact.StreamEnd{StreamID: "s"}))
	log.floor = 2
	r, err := eventlog.NewReader(t.Context(), log, "s", 2)
	require.NoError(t, err)
	var got []uint64
	for rec, err := range r.Records(t.Context()) {
		require.NoError(t, err)
		got = append(got, rec.Sequence)
	}
	require.Equal(t, []uint64{3, 4}, got)
	info, err := eventlog.NewStreams(log).Info(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamInfo{Status: eventlog.StreamCompleted, LatestSequence: 4}, info)
	m, err := eventlog.CleanupToStep(t.Context(), log, "s", "s", -1, 0)
	require.Nil(t, m)
	var invalid *eventlog.ValidationError
	require.ErrorAs(t, err, &invalid)
}
