package eventlog_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
)

// entryOf returns c as an entry, and changes it.
func entryOf(t *testing.T, c eventlog.Chunk, change ...func(*eventlog.Entry)) eventlog.Entry {
	t.Helper()
	e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
	require.NoError(t, err)
	for _, f := range change {
		f(&e)
	}
	return e
}

// together returns the payloads that entries become when they wait together.
func together(t *testing.T, o eventlog.WriterOptions, call func(*desk, eventlog.Entry) error, entries ...eventlog.Entry) (out []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, o)
		d.stuck()
		for _, e := range entries {
			result := later(func() error { return call(d, e) })
			defer func() { require.NoError(t, <-result) }()
		}
		d.gate.Open()
		require.NoError(t, d.Flush(t.Context()))
		for r, err := range d.log.Read(t.Context(), "s", 2, 0) {
			require.NoError(t, err)
			require.EqualValues(t, r.Sequence, r.Ordinal)
			out = append(out, string(r.Payload))
		}
	})
	return out
}

func byWrite(d *desk, e eventlog.Entry) error { return d.Write(d.t.Context(), e) }

func TestAdjacentDeltasMerge(t *testing.T) {
	at := func(ms int64) eventlog.Base {
		b := base
		b.Timestamp = ms
		return b
	}
	for name, tc := range map[string]struct {
		in   []eventlog.Chunk
		want eventlog.Chunk
	}{
		"text": {
			[]eventlog.Chunk{
				&eventlog.TextDelta{Delta: "a < \"b\"", Base: at(5)}, &eventlog.TextDelta{Base: at(6)}, &eventlog.TextDelta{Delta: "\u2028\n€", Base: at(100)},
			},
			&eventlog.TextDelta{Delta: "a < \"b\"\u2028\n€", Base: at(5)},
		},
		"reasoning": {
			[]eventlog.Chunk{&eventlog.Thinking{Content: "a", Base: at(5)}, &eventlog.Thinking{Content: "b", Base: at(6)}},
			&eventlog.Thinking{Content: "ab", Base: at(5)},
		},
		"arguments": {
			[]eventlog.Chunk{
				&eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: `{"a"`, Base: at(5)},
				&eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: `:1}`, Base: at(6)},
			},
			&eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: `{"a":1}`, Base: at(5)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var entries []eventlog.Entry
			for _, c := range tc.in {
				entries = append(entries, entryOf(t, c))
			}
			want := string(entryOf(t, tc.want).Payload)
			require.Equal(t, []string{want}, together(t, eventlog.WriterOptions{}, byWrite, entries...))
			all := func(d *desk, e eventlog.Entry) error {
				if string(e.Payload) != string(entries[0].Payload) {
					return nil
				}
				return d.Write(d.t.Context(), entries...)
			}
			require.Equal(t, []string{want}, together(t, eventlog.WriterOptions{}, all, entries[0]), "in one call")
			require.Len(t, together(t, eventlog.WriterOptions{NoMerge: true}, byWrite, entries...), len(entries), "NoMerge")
			appendOne := func(d *desk, e eventlog.Entry) error { return d.Append(d.t.Context(), e) }
			require.Len(t, together(t, eventlog.WriterOptions{}, appendOne, entries...), len(entries), "appends don't merge")
		})
	}
}

func TestWhatDoesNotMerge(t *testing.T) {
	other := func(change func(*eventlog.Base)) eventlog.Base {
		b := base
		change(&b)
		return b
	}
	text := func(b eventlog.Base) eventlog.Chunk { return &eventlog.TextDelta{Delta: "x", Base: b} }
	payload := func(s string) func(*eventlog.Entry) {
		return func(e *eventlog.Entry) { e.Payload = []byte(s) }
	}
	const canonical = `{"type":"text_delta","delta":"x","agentId":"session-1","agentType":"writer","timestamp":1700000000123,"step":2}`
	require.Equal(t, canonical, string(entryOf(t, text(base)).Payload))
	one := entryOf(t, text(base))
	byOthers := entryOf(t, text(base), func(e *eventlog.Entry) { *e = e.Encoded() })
	for name, pair := range map[string][2]eventlog.Entry{
		"another agent":      {one, entryOf(t, text(other(func(b *eventlog.Base) { b.AgentID = "session-2" })))},
		"another agent type": {one, entryOf(t, text(other(func(b *eventlog.Base) { b.AgentType = "reader" })))},
		"another step":       {one, entryOf(t, text(other(func(b *eventlog.Base) { b.Step = 3 })))},
		"another run":        {one, entryOf(t, text(base), func(e *eventlog.Entry) { e.Run = "run-2" })},
		"of a call":          {one, entryOf(t, text(base), func(e *eventlog.Entry) { e.Call = "call-1" })},
		"another type":       {one, entryOf(t, &eventlog.Thinking{Content: "x", Base: base})},
		"a whole thought":    {entryOf(t, &eventlog.Thinking{Content: "x", Base: base}), entryOf(t, &eventlog.Thinking{Content: "x", IsComplete: true, Base: base})},
		"two whole thoughts": {
			entryOf(t, &eventlog.Thinking{Content: "x", IsComplete: true, Base: base}),
			entryOf(t, &eventlog.Thinking{Content: "x", IsComplete: true, Base: base}),
		},
		"another call's arguments": {
			entryOf(t, &eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: "x", Base: base}),
			entryOf(t, &eventlog.ToolArgStreamDelta{ToolCallID: "d", Delta: "x", Base: base}),
		},
		"what NewChunk has not encoded": {byOthers, byOthers},
		"what is read once":             {byOthers.DecodeOnce(), byOthers.DecodeOnce()},
		"no delta":                      {entryOf(t, &eventlog.StepStart{Base: base}), entryOf(t, &eventlog.StepStart{Base: base})},
		"what does not decode":          {one, entryOf(t, text(base), payload(`{"type":"text_delta"`))},
		"broken before":                 {entryOf(t, text(base), payload("\xff")), one},
		"another kind of entry":         {one, entryOf(t, text(base), payload(`{"type":"step_start","agentId":"session-1"}`))},
		"a field of a later version": {
			one, entryOf(t, text(base), payload(strings.Replace(canonical, `"step":2`, `"step":2,"more":1`, 1))),
		},
		"white space":   {one, entryOf(t, text(base), payload(canonical+" "))},
		"a lone escape": {one, entryOf(t, text(base), payload(strings.Replace(canonical, `"x"`, `"\ud83d"`, 1)))},
		"not UTF-8":     {one, entryOf(t, text(base), payload(strings.Replace(canonical, `"x"`, "\"\xff\"", 1)))},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{string(pair[0].Payload), string(pair[1].Payload)}
			require.Equal(t, want, together(t, eventlog.WriterOptions{}, byWrite, pair[0], pair[1]))
		})
	}
}

// TestAMergeChangesNothingThatOthersHave: neither the chunks that the caller gave nor
// those of its entries, and what is observed is what is stored.
func TestAMergeChangesNothingThatOthersHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []eventlog.Record
		d := newDesk(t, eventlog.WriterOptions{Observe: func(r eventlog.Record) { seen = append(seen, r) }})
		d.stuck()
		chunks := []*eventlog.TextDelta{{Delta: "a\xff", Base: base}, {Delta: "\n", Base: base}, {Delta: "b", Base: base}}
		var entries []eventlog.Entry
		for _, c := range chunks {
			e := entryOf(t, c)
			entries = append(entries, e)
			require.NoError(t, d.Write(t.Context(), e))
		}
		payload := string(entries[0].Payload)
		d.gate.Open()
		require.NoError(t, d.Flush(t.Context()))

		require.Equal(t, "a\xff", chunks[0].Delta)
		for i, want := range []string{"a\ufffd", "\n", "b"} {
			c, err := entries[i].Chunk()
			require.NoError(t, err)
			require.Equal(t, &eventlog.TextDelta{Delta: want, Base: base}, c)
		}
		require.Equal(t, payload, string(entries[0].Payload))
		merged, err := seen[len(seen)-1].Chunk()
		require.NoError(t, err)
		require.Equal(t, &eventlog.TextDelta{Delta: "a\ufffd\nb", Base: base}, merged)
		for i, r := range logtest.Records(t, d.log, "s") {
			require.Equal(t, string(r.Payload), string(seen[i].Payload))
			requireValue(t, seen[i].Entry)
		}
	})
}

func TestMergedRecordsAreBounded(t *testing.T) {
	var entries []eventlog.Entry
	var want strings.Builder
	for i := range 300 {
		delta := strings.Repeat(string(rune('a'+i%26)), 997) + "\n\"\u2028"
		want.WriteString(delta)
		entries = append(entries, logtest.Text("s", delta))
	}
	entries = append(entries, logtest.Text("s", strings.Repeat("y", eventlog.MaxMergedBytes)), logtest.Text("s", "z"))
	want.WriteString(strings.Repeat("y", eventlog.MaxMergedBytes) + "z")
	var got strings.Builder
	payloads := together(t, eventlog.WriterOptions{}, byWrite, entries...)
	for i, p := range payloads {
		var d struct {
			Delta string `json:"delta"`
		}
		require.NoError(t, json.Unmarshal([]byte(p), &d))
		got.WriteString(d.Delta)
		if i < len(payloads)-2 {
			require.LessOrEqual(t, len(p), eventlog.MaxMergedBytes)
		}
	}
	require.Equal(t, want.String(), got.String())
	require.Len(t, payloads, 7, "300 KiB in records of 64 KiB, what is larger alone, and the rest")
}
