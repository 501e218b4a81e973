package eventlog_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// requireValue checks that an entry's chunk or fact is what its payload decodes to.
func requireValue(t *testing.T, e eventlog.Entry) {
	t.Helper()
	if e.Kind == eventlog.KindChunk {
		want, err := eventlog.DecodeChunk(e.Payload)
		require.NoError(t, err)
		got, err := e.Chunk()
		require.NoError(t, err)
		require.Equal(t, want, got)
		return
	}
	want, err := eventlog.DecodeFact(e.Payload)
	require.NoError(t, err)
	got, err := e.Fact()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAnEntrysValueIsWhatItsPayloadDecodesTo(t *testing.T) {
	var entries []eventlog.Entry
	add := func(e eventlog.Entry, err error) {
		require.NoError(t, err)
		entries = append(entries, e)
	}
	for _, s := range chunkSamples {
		add(eventlog.NewChunk(s.full, eventlog.Labels{}))
		add(eventlog.NewChunk(s.minimal, eventlog.Labels{}))
	}
	for _, s := range factSamples {
		add(eventlog.NewFact("s", s.full, eventlog.Labels{}))
		add(eventlog.NewFact("s", s.minimal, eventlog.Labels{}))
	}
	// What is read is not always what was given.
	for _, text := range []string{"\xff", "\xe2\x82", "a\xff\xfeb\xed\xa0\x80", "\ufffd", "\x00\x7f\u2028"} {
		add(eventlog.NewChunk(&eventlog.TextDelta{Delta: text, Base: base}, eventlog.Labels{}))
		add(eventlog.NewChunk(&eventlog.Thinking{Content: text, IsComplete: true, Base: base}, eventlog.Labels{}))
		add(eventlog.NewChunk(&eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: text, Base: base}, eventlog.Labels{}))
		add(eventlog.NewChunk(&eventlog.Error{Error: text, Base: base}, eventlog.Labels{}))
	}
	add(eventlog.NewChunk(&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Base: base}, eventlog.Labels{}))
	add(eventlog.NewChunk(&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: []byte(" [ 1 ] "), Base: base}, eventlog.Labels{}))
	add(eventlog.NewChunk(&eventlog.Unknown{Kind: "newer", Raw: []byte(`{"type":"newer","agentId":"s"}`)}, eventlog.Labels{}))
	for _, e := range entries {
		requireValue(t, e)
		requireValue(t, e) // the second time it is known
		requireValue(t, e.Encoded())
		requireValue(t, e.Encoded().DecodeOnce())
	}
}

// TestAnEntryIsItsOwn: neither the chunk from which it was made nor a payload that
// replaces its own affects another entry.
func TestAnEntryIsItsOwn(t *testing.T) {
	text, raw := &eventlog.TextDelta{Delta: "a", Base: base}, []byte(`{"a":1}`)
	delta := entryOf(t, text)
	custom := entryOf(t, &eventlog.CustomEvent{EventName: "e", Data: raw, Base: base})
	unknown := []byte(`{"type":"newer","agentId":"s"}`)
	newer := entryOf(t, &eventlog.Unknown{Kind: "newer", Raw: unknown})
	text.Delta, raw[2], unknown[3] = "b", 'b', 'b'
	for _, e := range []eventlog.Entry{delta, custom, newer} {
		requireValue(t, e)
		require.NotContains(t, string(e.Payload), "b\"")

		other := e
		other.Payload = bytes.Replace(bytes.Clone(e.Payload), []byte(`"a`), []byte(`"c`), 1)
		requireValue(t, other)
		requireValue(t, e)
		other.Payload = nil
		_, err := other.Chunk()
		require.Error(t, err)
	}
}

func TestTheEnvelopeDecides(t *testing.T) {
	for _, e := range []eventlog.Entry{
		entryOf(t, &eventlog.TextDelta{Delta: "a", Base: base}), entryOf(t, &eventlog.StepStart{Base: base}),
	} {
		_, err := e.Fact()
		require.ErrorContains(t, err, "is no fact")
		e.Type = "thinking"
		_, err = e.Chunk()
		require.ErrorContains(t, err, "a record of type thinking holds a")
		e.Kind = eventlog.KindFact
		_, err = e.Fact()
		require.ErrorContains(t, err, "a record of type thinking holds a")
	}
}

func TestCopiesOfAnEntryShareItsValue(t *testing.T) {
	wire := entryOf(t, &eventlog.CustomEvent{EventName: "e", Data: []byte(`{"a":1}`), Base: base}).Encoded()
	shared := wire.DecodeOnce()
	first, err := shared.Chunk()
	require.NoError(t, err)
	var readers sync.WaitGroup
	for range 4 {
		e := shared
		readers.Go(func() {
			if got, err := e.DecodeOnce().Chunk(); err != nil || got != first {
				t.Error(got, err)
			}
			if got, err := e.Encoded().Chunk(); err != nil || got == first {
				t.Error(got, err)
			}
		})
	}
	readers.Wait()
	require.Equal(t, wire, shared.Encoded())
}

// TestADeltasEncoderWritesEveryField: also one that a later version adds.
func TestADeltasEncoderWritesEveryField(t *testing.T) {
	for _, c := range []eventlog.Chunk{new(eventlog.TextDelta), new(eventlog.Thinking), new(eventlog.ToolArgStreamDelta)} {
		v := reflect.ValueOf(c).Elem()
		for _, f := range reflect.VisibleFields(v.Type()) {
			switch at := v.FieldByIndex(f.Index); f.Type.Kind() {
			case reflect.String:
				at.SetString(f.Name)
			case reflect.Int, reflect.Int64:
				at.SetInt(7)
			case reflect.Bool:
				at.SetBool(true)
			case reflect.Struct:
			default:
				t.Fatalf("%s: not set by this test", f.Name)
			}
		}
		e := entryOf(t, c)
		want, err := json.Marshal(c)
		require.NoError(t, err)
		require.Equal(t, `{"type":"`+c.Type()+`",`+string(want[1:]), string(e.Payload))
		requireValue(t, e)
	}
}
