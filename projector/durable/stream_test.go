package durable_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/durable"
)

// fold folds facts with the sequences 1, 2 and so on, each at 1000 ms times its sequence.
func fold(t *testing.T, s *durable.Stream, facts ...fact.Fact) *durable.Stream {
	t.Helper()
	for i, f := range facts {
		var problem string
		s, problem = durable.Apply(s, eventlog.Record{Sequence: uint64(i + 1)}, f)
		require.Empty(t, problem)
	}
	return s
}

func at(ms int64) fact.Base { return fact.Base{SessionID: "~stream/a", Timestamp: ms} }

// A record that does not continue the stream changes nothing.
func TestWhatDoesNotFollowIsRefused(t *testing.T) {
	s, problem := durable.Apply(nil, eventlog.Record{Sequence: 1}, &fact.DurableAppended{Text: "x"})
	require.Nil(t, s)
	require.NotEmpty(t, problem)
	s = fold(t, nil, &fact.DurableCreated{ContentType: "text/plain"}, &fact.DurableAppended{Text: "ab"}, &fact.DurableAppended{Position: 2, Closes: true})
	require.EqualValues(t, 2, s.Position)
	require.EqualValues(t, 2, s.Sequence, "a close alone moves no offset")
	for _, f := range []fact.Fact{&fact.DurableCreated{}, &fact.DurableAppended{Position: 2, Text: "c"}} {
		before := *s
		after, problem := durable.Apply(s, eventlog.Record{Sequence: 9}, f)
		require.NotEmpty(t, problem)
		require.Equal(t, before, *after)
	}
}

// A stream remembers a bounded number of producers: those that wrote last.
func TestProducersAreBounded(t *testing.T) {
	s := fold(t, nil, &fact.DurableCreated{ContentType: "text/plain"})
	for i := range 3 * durable.MaxProducers {
		_, problem := durable.Apply(s, eventlog.Record{Sequence: uint64(i + 2)}, &fact.DurableAppended{
			Position: s.Position, Text: "x", Producer: &fact.DurableProducer{ID: fmt.Sprint(i)},
		})
		require.Empty(t, problem)
		require.LessOrEqual(t, len(s.Producers), durable.MaxProducers)
		_, known := s.Producers[fmt.Sprint(max(0, i-durable.MaxProducers*3/4+1))]
		require.True(t, known)
	}
}

// A TTL counts from the last recorded use, and never ends early.
func TestExpiry(t *testing.T) {
	s := fold(t, nil, &fact.DurableCreated{ContentType: "text/plain", TTL: new(int64(8)), Base: at(1000)})
	require.EqualValues(t, 1000+8000+1000, s.Expires())
	s, _ = durable.Apply(s, eventlog.Record{Sequence: 2}, &fact.DurableChanged{Base: at(5000)})
	require.EqualValues(t, 5000+8000+1000, s.Expires())
	s, _ = durable.Apply(s, eventlog.Record{Sequence: 3}, &fact.DurableChanged{Fork: &fact.DurableFork{Stream: "~stream/b", Ref: "r"}, Base: at(6000)})
	require.EqualValues(t, 5000+8000+1000, s.Expires(), "a fork is no use")
	require.Len(t, s.Forks, 1)
	require.Positive(t, (&durable.Stream{TTL: new(int64(1 << 53))}).Expires(), "it does not overflow")

	s = fold(t, nil, &fact.DurableCreated{ContentType: "text/plain", ExpiresAt: "1970-01-01T00:00:02+00:00"})
	require.EqualValues(t, 2000, s.Expires())
	require.True(t, s.SameExpiry(nil, "1970-01-01T01:00:02+01:00"))
	require.False(t, s.SameExpiry(new(int64(2)), ""))
}

// A clone is folded apart from its original.
func TestClone(t *testing.T) {
	s := fold(t, nil, &fact.DurableCreated{ContentType: "text/plain"}, &fact.DurableAppended{Text: "a", Producer: &fact.DurableProducer{ID: "p"}})
	c := s.Clone()
	c, _ = durable.Apply(c, eventlog.Record{Sequence: 3}, &fact.DurableAppended{Position: 1, Text: "b", Producer: &fact.DurableProducer{ID: "p", Seq: 1}})
	require.EqualValues(t, 0, s.Producers["p"].Seq)
	require.EqualValues(t, 1, c.Producers["p"].Seq)
	require.EqualValues(t, 1, s.Position)
}
