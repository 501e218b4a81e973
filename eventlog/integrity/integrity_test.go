package integrity_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/logtest"
)

// written is a log in the making: its records get the sequences 10, 20, ….
type written []eventlog.Record

func (w *written) add(writer string, ordinal uint64, e eventlog.Entry) *eventlog.Record {
	e.Writer, e.Ordinal = writer, ordinal
	*w = append(*w, eventlog.Record{Sequence: uint64(len(*w)+1) * 10, Entry: e})
	return &(*w)[len(*w)-1]
}

func (w *written) claim(writer string, ordinal uint64) {
	w.add(writer, ordinal, logtest.Fact("s", &fact.RunClaimed{
		RunID: "r", Node: "n", Attempt: 1, Base: fact.Base{SessionID: "s", Timestamp: 1},
	}))
}

func (w *written) text(writer string, ordinals ...uint64) {
	for _, n := range ordinals {
		w.add(writer, n, logtest.Text("s", "x"))
	}
}

func (w written) records() iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for _, r := range w {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// place is a finding without its words.
type place struct {
	code     integrity.Code
	sequence uint64
}

func check(t *testing.T, trimmed bool, w written) (found []place) {
	t.Helper()
	n, err := integrity.Check("s", trimmed, w.records(), func(f integrity.Finding) {
		require.Equal(t, "s", f.Session)
		require.NotEmpty(t, f.Detail)
		found = append(found, place{f.Code, f.Sequence})
	})
	require.NoError(t, err)
	require.Equal(t, len(w), n)
	return found
}

func TestCheckTakesWhatWritersWrite(t *testing.T) {
	var w written
	w.text("key:d:k", 1, 2)
	w.claim("a", 1)
	w.text("a", 2, 3)
	w.text("", 0, 0) // appended without a promise
	w.text("key:d:other", 1)
	w.text("a", 4)
	w.claim("b", 1)
	w.text("stream:1", 1)
	w.text("b", 2)
	require.Empty(t, check(t, false, w))
	require.Empty(t, check(t, true, w[3:]), "retention has removed the beginning")

	imported := w[3:]
	for i := range imported {
		imported[i].Origin.Sequence = 7
	}
	require.Empty(t, check(t, false, imported), "of a session whose beginning was removed where it comes from")
}

func TestCheckFindsWhatMustNotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(w *written)
		want  []place
	}{
		"a sequence that does not rise": {
			func(w *written) { w.text("a", 1, 2, 3); (*w)[1].Sequence = 10; (*w)[2].Sequence = 5 },
			[]place{{integrity.FoundOrder, 10}, {integrity.FoundOrder, 5}},
		},
		"a record of a superseded writer": {
			func(w *written) { w.claim("a", 1); w.claim("b", 1); w.text("a", 2); w.text("b", 2); w.text("a", 3) },
			[]place{{integrity.FoundFencing, 30}, {integrity.FoundFencing, 50}},
		},
		"a claim of a superseded writer": {
			func(w *written) { w.claim("a", 1); w.claim("b", 1); w.claim("a", 2); w.text("b", 2) },
			[]place{{integrity.FoundFencing, 30}},
		},
		"a record behind a claim without a writer": {
			func(w *written) { w.claim("a", 1); w.claim("", 0); w.text("a", 2) },
			[]place{{integrity.FoundFencing, 30}},
		},
		"an append that is there twice": {
			func(w *written) { w.text("a", 1, 2); w.text("b", 1); w.text("a", 1, 2) },
			[]place{{integrity.FoundOrdinal, 40}, {integrity.FoundOrdinal, 50}},
		},
		"a record that is left out": {
			func(w *written) { w.text("a", 1, 3, 4) },
			[]place{{integrity.FoundOrdinal, 20}},
		},
		"a first record that is left out": {
			func(w *written) { w.text("a", 2, 3) },
			[]place{{integrity.FoundOrdinal, 10}},
		},
		"a writer without ordinals": {
			func(w *written) { w.text("a", 0, 1) },
			[]place{{integrity.FoundOrdinal, 10}},
		},
		"what is no JSON": {
			func(w *written) {
				w.add("a", 1, logtest.Text("s", "x")).Payload = []byte(`{"type":"text_delta"`)
				w.add("a", 2, logtest.Text("s", "x")).Payload = nil
				w.add("a", 3, logtest.Fact("s", &fact.StreamResumed{})).Payload = []byte("\x00")
			},
			[]place{{integrity.FoundPayload, 10}, {integrity.FoundPayload, 20}, {integrity.FoundPayload, 30}},
		},
		"what can't be decoded": {
			func(w *written) {
				w.add("a", 1, logtest.Text("s", "x")).Payload = []byte(`{"type":"text_delta","delta":{}}`)
				w.add("a", 2, logtest.Text("s", "x")).Payload = []byte(`[]`)
			},
			[]place{{integrity.FoundPayload, 10}, {integrity.FoundPayload, 20}},
		},
		"another type than the envelope's": {
			func(w *written) { w.add("a", 1, logtest.Text("s", "x")).Type = "thinking" },
			[]place{{integrity.FoundPayload, 10}},
		},
		"a marker that readers can't follow": {
			func(w *written) {
				w.add("a", 1, logtest.Fact("s", &eventlog.Truncated{Reason: eventlog.ResyncRollback})).Payload = []byte(
					`{"type":"truncated","reason":"rollback","ranges":[{"agentId":"s","from":1,"to":2,"scope":"newer"}],"atSequence":5}`)
			},
			[]place{{integrity.FoundMarker, 10}},
		},
		"what only a newer version knows, once of each": {
			func(w *written) {
				for i := range uint64(2) {
					r := w.add("a", 3*i+1, logtest.Text("s", "x"))
					r.Type, r.Payload = "newer", []byte(`{"type":"newer"}`)
					r = w.add("a", 3*i+2, logtest.Text("s", "x"))
					r.Kind, r.Type, r.Payload = eventlog.KindFact, "newer", []byte(`{"type":"newer"}`)
					r = w.add("a", 3*i+3, logtest.Text("s", "x"))
					r.Kind, r.Payload = "", []byte("anything")
				}
			},
			[]place{{integrity.FoundUnknownType, 10}, {integrity.FoundUnknownType, 20}, {integrity.FoundUnknownKind, 30}},
		},
	} {
		var w written
		tc.write(&w)
		require.Equal(t, tc.want, check(t, false, w), name)
	}
}

func TestCheckTellsOnlyFewUnknownTypes(t *testing.T) {
	var w written
	for i := range uint64(1000) {
		r := w.add("a", i+1, logtest.Text("s", "x"))
		r.Kind = eventlog.Kind(string(rune('a' + i)))
	}
	require.Len(t, check(t, false, w), 32)
}

func TestCheckEndsWithTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	n, err := integrity.Check("s", false, func(yield func(eventlog.Record, error) bool) {
		_ = yield(eventlog.Record{Sequence: 1, Entry: logtest.Text("s", "x")}, nil) && yield(eventlog.Record{}, broken)
	}, func(f integrity.Finding) { t.Errorf("found %v", f) })
	require.ErrorIs(t, err, broken)
	require.Equal(t, 1, n)
}

func TestNotesAreNoProblems(t *testing.T) {
	require.True(t, integrity.FoundUnknownType.IsNote())
	require.False(t, integrity.FoundGap.IsNote())
}
