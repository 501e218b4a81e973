package eventlog_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

var errBroken = errors.New("broken")

// streamOf yields the given chunks, then err if it is not nil.
func streamOf(err error, chunks ...eventlog.Chunk) eventlog.Stream {
	return func(yield func(eventlog.StoredChunk, error) bool) {
		for i, c := range chunks {
			if !yield(eventlog.StoredChunk{Chunk: c, Sequence: uint64(i + 1)}, nil) {
				return
			}
		}
		if err != nil {
			yield(eventlog.StoredChunk{}, err)
		}
	}
}

func deltaOf(agent, typ, text string) eventlog.Chunk {
	return &eventlog.TextDelta{Delta: text, Base: eventlog.Base{AgentID: agent, AgentType: typ}}
}

func TestCollectText(t *testing.T) {
	chunks := []eventlog.Chunk{
		deltaOf("s", "a", "1"), &eventlog.Thinking{Content: "hm", Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, deltaOf("s", "a", "3"),
	}
	text, err := eventlog.CollectText(streamOf(nil, chunks...))
	require.NoError(t, err)
	require.Equal(t, "13", text)
	_, err = eventlog.CollectText(streamOf(errBroken, chunks...))
	require.ErrorIs(t, err, errBroken)
}

func TestChunksOfRecords(t *testing.T) {
	c, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: "x", Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, eventlog.Labels{})
	require.NoError(t, err)
	f, err := eventlog.NewFact("s", &eventlog.StreamResumed{FactBase: eventlog.FactBase{SessionID: "s"}}, eventlog.Labels{})
	require.NoError(t, err)
	broken := c
	broken.Payload = []byte("{")
	records := func(yield func(eventlog.Record, error) bool) {
		for i, e := range []eventlog.Entry{f, c, broken} {
			if !yield(eventlog.Record{Sequence: uint64(i + 1), Entry: e}, nil) {
				return
			}
		}
	}
	all, err := eventlog.CollectAll(eventlog.Chunks(records))
	require.Error(t, err, "what can't be decoded is not left out silently")
	require.Len(t, all, 1)
	require.EqualValues(t, 2, all[0].Sequence)
}
