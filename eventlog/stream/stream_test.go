package stream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/stream"
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

func mixed(err error) eventlog.Stream {
	return streamOf(err,
		deltaOf("parent", "a", "1"), &eventlog.Thinking{Content: "hm", Base: eventlog.Base{AgentID: "parent", AgentType: "a"}},
		deltaOf("child", "b", "2"), deltaOf("parent", "a", "3"), deltaOf("other", "b", "4"))
}

func TestFilters(t *testing.T) {
	for name, tc := range map[string]struct {
		filter func(eventlog.Stream) eventlog.Stream
		want   []uint64
	}{
		"agent id":   {func(s eventlog.Stream) eventlog.Stream { return stream.FilterByAgentID(s, "parent") }, []uint64{1, 2, 4}},
		"agent type": {func(s eventlog.Stream) eventlog.Stream { return stream.FilterByAgentType(s, "b") }, []uint64{3, 5}},
		"type":       {func(s eventlog.Stream) eventlog.Stream { return stream.FilterByType(s, "thinking", "output") }, []uint64{2}},
		"exclude":    {func(s eventlog.Stream) eventlog.Stream { return stream.ExcludeTypes(s, "thinking") }, []uint64{1, 3, 4, 5}},
		"skip":       {func(s eventlog.Stream) eventlog.Stream { return stream.Skip(s, 3) }, []uint64{4, 5}},
		"skip all":   {func(s eventlog.Stream) eventlog.Stream { return stream.Skip(s, 9) }, []uint64{}},
		"predicate": {func(s eventlog.Stream) eventlog.Stream {
			return stream.FilterWith(s, func(c eventlog.Chunk) bool { return eventlog.BaseOf(c).AgentID == "other" })
		}, []uint64{5}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := stream.CollectAll(tc.filter(mixed(errBroken)))
			require.ErrorIs(t, err, errBroken, "an error gets through")
			got := []uint64{}
			for _, c := range all {
				got = append(got, c.Sequence)
			}
			require.Equal(t, tc.want, got)
			for range tc.filter(mixed(nil)) {
				break // stopping early is fine
			}
		})
	}
	text, err := stream.CollectText(stream.FilterByAgentID(mixed(nil), "parent"))
	require.NoError(t, err)
	require.Equal(t, "13", text)
	_, err = stream.CollectText(mixed(errBroken))
	require.ErrorIs(t, err, errBroken)
}

func TestTakeDoesNotWaitForMore(t *testing.T) {
	endless := func(yield func(eventlog.StoredChunk, error) bool) {
		for i := uint64(1); ; i++ {
			if i > 2 {
				t.Error("asked for more than was taken")
			}
			if !yield(eventlog.StoredChunk{Chunk: deltaOf("s", "a", "x"), Sequence: i}, nil) {
				return
			}
		}
	}
	all, err := stream.CollectAll(stream.Take(endless, 2))
	require.NoError(t, err)
	require.Len(t, all, 2)
	all, err = stream.CollectAll(stream.Take(endless, 0))
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestCombine(t *testing.T) {
	opened := func(s eventlog.Stream) func(context.Context) eventlog.Stream {
		return func(context.Context) eventlog.Stream { return s }
	}
	t.Run("all of all, each in order", func(t *testing.T) {
		var streams []func(context.Context) eventlog.Stream
		for s := range 4 {
			var chunks []eventlog.Chunk
			for i := range 100 {
				chunks = append(chunks, deltaOf(fmt.Sprint(s), "a", fmt.Sprint(i)))
			}
			streams = append(streams, opened(streamOf(nil, chunks...)))
		}
		all, err := stream.CollectAll(stream.Combine(t.Context(), streams...))
		require.NoError(t, err)
		require.Len(t, all, 400)
		for s := range 4 {
			mine := slices.DeleteFunc(slices.Clone(all), func(c eventlog.StoredChunk) bool {
				return eventlog.BaseOf(c.Chunk).AgentID != fmt.Sprint(s)
			})
			for i, c := range mine {
				require.EqualValues(t, i+1, c.Sequence)
			}
		}
	})
	waiting := func(ctx context.Context) eventlog.Stream {
		return func(yield func(eventlog.StoredChunk, error) bool) {
			<-ctx.Done()
			yield(eventlog.StoredChunk{}, ctx.Err())
		}
	}
	t.Run("an error ends it", func(t *testing.T) {
		_, err := stream.CollectAll(stream.Combine(t.Context(), waiting, opened(mixed(errBroken))))
		require.ErrorIs(t, err, errBroken)
	})
	t.Run("it stops with its consumer", func(t *testing.T) {
		all, err := stream.CollectAll(stream.Take(stream.Combine(t.Context(), waiting, opened(mixed(nil))), 5))
		require.NoError(t, err)
		require.Len(t, all, 5)
	})
	t.Run("it ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := stream.CollectAll(stream.Combine(ctx, waiting))
		require.ErrorIs(t, err, context.Canceled)
	})
	all, err := stream.CollectAll(stream.Combine(t.Context()))
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestChunksOfRecords(t *testing.T) {
	c, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: "x", Base: eventlog.Base{AgentID: "s", AgentType: "a"}}, eventlog.Labels{})
	require.NoError(t, err)
	f, err := eventlog.NewFact("s", &fact.StreamResumed{Base: fact.Base{SessionID: "s"}}, eventlog.Labels{})
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
	all, err := stream.CollectAll(eventlog.Chunks(records))
	require.Error(t, err, "what can't be decoded is not left out silently")
	require.Len(t, all, 1)
	require.EqualValues(t, 2, all[0].Sequence)
}
