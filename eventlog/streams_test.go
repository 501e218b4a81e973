package eventlog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/eventlog/stream"
)

// TestResetStream: after a reset no chunk is left, a stream that had ended is active again, and
// sequences keep rising.
func TestResetStream(t *testing.T) {
	log := memory.New()
	streams := eventlog.NewStreams(log)
	ctx := t.Context()
	_, err := streams.ResetStream(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	write := func(agent, text string) uint64 {
		w, err := streams.CreateWriter("s", agent, "a")
		require.NoError(t, err)
		at, err := w.Write(ctx, &eventlog.TextDelta{Delta: text, Base: eventlog.Base{AgentID: agent, AgentType: "a", Step: 1}},
			&eventlog.Error{Error: "odd", Recoverable: true, Base: eventlog.Base{AgentID: agent, AgentType: "a", Step: 1}})
		require.NoError(t, err)
		return at
	}
	chunks := func() (n int) {
		for _, err := range streams.AllChunks(ctx, "s") {
			require.NoError(t, err)
			n++
		}
		return n
	}
	write("s", "a")
	before := write("s-sub-c", "b")
	require.NoError(t, streams.EndStream(ctx, "s", nil))

	m, err := streams.ResetStream(ctx, "s")
	require.NoError(t, err)
	require.Len(t, m.Ranges, 2)
	require.Zero(t, chunks())
	info, err := streams.Info(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamActive, info.Status)
	m, err = streams.ResetStream(ctx, "s")
	require.NoError(t, err)
	require.Nil(t, m, "nothing is left to reset")

	require.Greater(t, write("s", "c"), before)
	require.Equal(t, 2, chunks())
	require.NoError(t, streams.PauseStream(ctx, "s", ""))
	_, err = streams.ResetStream(ctx, "s")
	require.NoError(t, err)
	info, err = streams.Info(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamActive, info.Status)
}

func TestStreamWritersWriteTheirOwnChunksOnly(t *testing.T) {
	log := memory.New()
	streams := eventlog.NewStreams(log)
	var invalid *eventlog.ValidationError
	for field, ids := range map[string][3]string{
		"sessionId": {"", "s", "a"}, "agentId": {"s", "", "a"}, "agentType": {"s", "s", "\n"},
	} {
		_, err := streams.CreateWriter(ids[0], ids[1], ids[2])
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}

	w, err := streams.CreateWriter("s", "child", "a")
	require.NoError(t, err)
	good := &eventlog.TextDelta{Delta: "x", Base: eventlog.Base{AgentID: "child", AgentType: "a"}}
	for field, c := range map[string]eventlog.Chunk{
		"agentId":   &eventlog.TextDelta{Base: eventlog.Base{AgentID: "s", AgentType: "a"}},
		"agentType": &eventlog.TextDelta{Base: eventlog.Base{AgentID: "child", AgentType: "b"}},
		"type":      &eventlog.StepStart{Base: good.Base},
		"step":      &eventlog.TextDelta{Base: eventlog.Base{AgentID: "child", AgentType: "a", Step: -1}},
	} {
		_, err := w.Write(t.Context(), good, c)
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, field, invalid.Field)
	}
	_, err = w.Write(t.Context(), slices.Repeat([]eventlog.Chunk{good}, eventlog.MaxAppendRecords+1)...)
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	_, err = log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "a refused write leaves nothing")

	last, err := w.Write(t.Context(), slices.Repeat([]eventlog.Chunk{good}, eventlog.MaxAppendRecords)...)
	require.NoError(t, err)
	require.EqualValues(t, eventlog.MaxAppendRecords, last)
	last, err = w.Write(t.Context())
	require.NoError(t, err, "nothing is no append")
	require.EqualValues(t, eventlog.MaxAppendRecords, last)
	require.ErrorAs(t, streams.EndStream(t.Context(), "s", raw("{")), &invalid)
}

// TestAChildsEndIsNotTheStreams: a stream is of a tree and ends with its root.
func TestAChildsEndIsNotTheStreams(t *testing.T) {
	log := memory.New()
	child, err := eventlog.NewFact("child", &fact.StreamEnd{StreamID: "child"}, eventlog.Labels{})
	require.NoError(t, err)
	put(t, log, word(t, "a"), child, word(t, "b"))
	info, err := eventlog.NewStreams(log).Info(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamInfo{Status: eventlog.StreamActive, LatestSequence: 3}, info)
}

// TestAWriterThatIsCrowdedOutEndsWithItsContext and has written nothing.
func TestAWriterThatIsCrowdedOutEndsWithItsContext(t *testing.T) {
	t.Parallel()
	log := &crowdedLog{Log: memory.New()}
	put(t, log.Log, word(t, "a"))
	w, err := eventlog.NewStreams(log).CreateWriter("s", "s", "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	log.before = func() {
		put(t, log.Log, word(t, "quicker"))
		if log.appends == 5 {
			cancel(context.Canceled)
		}
	}
	_, err = w.Write(ctx, &eventlog.TextDelta{Delta: "mine", Base: eventlog.Base{AgentID: "s", AgentType: "a"}})
	require.ErrorIs(t, err, context.Canceled)
	log.before = nil
	text, err := stream.CollectText(eventlog.NewStreams(log).AllChunks(t.Context(), "s"))
	require.NoError(t, err)
	require.Equal(t, "aquickerquickerquickerquickerquicker", text)
	_, err = w.Write(t.Context(), &eventlog.TextDelta{Delta: "mine", Base: eventlog.Base{AgentID: "s", AgentType: "a"}})
	require.NoError(t, err)
}

// crowdedLog lets another writer append first.
type crowdedLog struct {
	eventlog.Log
	before  func()
	appends int
}

func (l *crowdedLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	l.appends++
	if l.before != nil {
		l.before()
	}
	return l.Log.Append(ctx, session, expected, entries)
}
