package stream

import (
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/snapshot"
)

// TestStoreFeedLooksAhead: a client that lags receives a marker before the chunks that it
// truncates, and does not receive those. Without looking ahead, a client receives the
// marker in its place.
func TestStoreFeedLooksAhead(t *testing.T) {
	for every, want := range map[time.Duration][]string{
		0:         {"a", "truncated 4", "b", "e", "truncated 7", "g", "end"},
		time.Hour: {"a", "b", "c", "d", "truncated 4", "e", "f", "truncated 7", "g", "end"},
	} {
		log := memory.New()
		text := func(delta string) eventlog.Entry {
			return entry(t, &eventlog.TextDelta{Delta: delta, Base: eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1}}, nil)
		}
		strike := func(from, to uint64) eventlog.Entry {
			return entry(t, nil, &eventlog.Truncated{
				Reason: eventlog.ResyncRetry, AtSequence: to, Ranges: []eventlog.Range{{AgentID: "s", From: from, To: to}},
				Base: fact.Base{SessionID: "s", Timestamp: 1},
			})
		}
		head := uint64(0)
		put := func(entries ...eventlog.Entry) {
			t.Helper()
			var err error
			head, err = log.Append(t.Context(), "s", head, entries)
			require.NoError(t, err)
		}
		put(text("a"), text("b"), text("c"), text("d")) // what is there when the client comes
		next, stop := iter.Pull2(feedOf(t, log, every))
		defer stop()
		var got []string
		pull := func() bool {
			e, err, ok := next()
			require.NoError(t, err)
			if ok {
				got = append(got, said(t, e))
			}
			return ok
		}
		require.True(t, pull())
		put(strike(3, 4), text("e"))
		for got[len(got)-1] != "e" {
			require.True(t, pull(), "%v", got)
		}
		put(text("f"), strike(7, 7), text("g"), entry(t, nil, &fact.StreamEnd{StreamID: "s", Timestamp: 1}))
		for pull() {
		}
		require.Equal(t, want, got)
	}
}

func entry(t *testing.T, c eventlog.Chunk, f fact.Fact) (e eventlog.Entry) {
	t.Helper()
	var err error
	if c != nil {
		e, err = eventlog.NewChunk(c, eventlog.Labels{Run: "r"})
	} else {
		e, err = eventlog.NewFact("s", f, eventlog.Labels{})
	}
	require.NoError(t, err)
	return e
}

// feedOf returns what a fresh client of session s gets that has been looked
// ahead for just now.
func feedOf(t *testing.T, log eventlog.Log, every time.Duration) iter.Seq2[web.Event, error] {
	t.Helper()
	s := New(log, snapshot.New(log, nil))
	tree, err := s.states.Head(t.Context(), "s")
	require.NoError(t, err)
	at := startOf("s", tree, storeEnding)
	live, err := Attach(t.Context(), log, "s")
	require.NoError(t, err)
	t.Cleanup(live.Leave)
	f := &storeEvents{Routes: s, at: at, every: every, looked: time.Now(), known: tree.Head}
	return f.events(t.Context(), live.Since(t.Context(), 0))
}

func said(t *testing.T, e web.Event) string {
	t.Helper()
	var data struct {
		Type       string
		Chunk      struct{ Delta string }
		AtSequence uint64
	}
	require.NoError(t, json.Unmarshal(e.Data, &data))
	switch data.Type {
	case "chunk":
		return data.Chunk.Delta
	case "truncated":
		return fmt.Sprint("truncated ", data.AtSequence)
	}
	return data.Type
}
