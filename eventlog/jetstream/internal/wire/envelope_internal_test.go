package wire

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	ulidA = "01JD0000000000000000000000"
	ulidB = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
)

var envelopes = []eventlog.Envelope{
	{},
	{Kind: "chunk", Type: "text_delta", Agent: "s"},
	{Kind: "chunk", Type: "text_delta", Agent: "s", Run: ulidA, Writer: ulidB, Ordinal: 1 << 40},
	{Kind: "chunk", Type: "thinking", Agent: ulidA, Call: "call,1"},
	{Kind: "chunk", Type: "tool_arg_stream_delta", Run: "%41", Writer: "é \r\n\x00", Call: "'"},
	{Kind: "chunk", Type: "t", Agent: "-", Run: "-", Writer: "'x", Call: ","},
	{Kind: "fact", Type: "erased", Agent: "other", Ordinal: 35},
	{Kind: "fact", Type: "text_delta", Run: strings.Repeat("x", packedULID), Writer: strings.ToLower(ulidA), Call: ulidA[:25] + "U"},
	{Kind: "c", Type: "f.x,y"}, {Kind: "f", Type: ""}, {Kind: "later.kind", Type: "a.b"}, {Kind: "", Type: "typed"}, {Kind: "chunk"},
	{Kind: "chunk", Type: "run", Agent: "run-", Run: "run-" + ulidA, Writer: "~", Call: "run-" + strings.ToLower(ulidA)},
	{Kind: "chunk", Type: "run", Agent: "~" + strings.Repeat("x", packedULID), Run: "run-1", Writer: "'~", Call: "run-" + ulidB},
	{Kind: "chunk", Type: "x", Run: "8" + ulidA[1:], Writer: strings.Repeat("'", packedULID), Ordinal: 1},
}

func header(subject string, e eventlog.Envelope) nats.Header {
	return NewMessage(subject, Stored{Record: eventlog.Record{Entry: eventlog.Entry{Envelope: e}}}, false).Header
}

// overTheWire returns headers as a client receives them from another one.
func overTheWire(t testing.TB, h nats.Header) nats.Header {
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	require.NoError(t, http.Header(h).Write(&b))
	b.WriteString("\r\n")
	got, err := nats.DecodeHeadersMsg([]byte(b.String()))
	require.NoError(t, err)
	return got
}

func TestEnvelopesAreDecodedUnchanged(t *testing.T) {
	for _, session := range []string{"s", "a b/é.*", ulidA, "-"} {
		for _, e := range envelopes {
			h := overTheWire(t, header(layout.LogSubject(session, 3), e))
			require.Equal(t, e, envelopeOf(layout.LogSubject(session, 3), h), "%v", h)
			require.Len(t, h, 1)
		}
	}
}

// TestEnvelopesInSeparateHeadersAreRead: as versions before HeaderEnvelope wrote them.
func TestEnvelopesInSeparateHeadersAreRead(t *testing.T) {
	visible := func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' }
	for _, e := range envelopes {
		h := nats.Header{}
		for name, v := range map[string]string{
			HeaderKind: string(e.Kind), headerType: e.Type, headerAgent: e.Agent, headerRun: e.Run, headerCall: e.Call, headerWriter: e.Writer,
			headerOrdinal: strconv.FormatUint(e.Ordinal, 10),
		} {
			if v != "" && v != "0" {
				h[name] = []string{layout.Escape(v, visible)}
			}
		}
		require.Equal(t, e, envelopeOf(layout.LogSubject("s", 0), overTheWire(t, h)))
		require.Equal(t, e.Kind == eventlog.KindFact && e.Type == ErasedType, IsErased(h))
	}
}

// TestTheEnvelopeIsShort: the form can't change, so that logs stay readable.
func TestTheEnvelopeIsShort(t *testing.T) {
	e := eventlog.Envelope{Kind: "chunk", Type: "text_delta", Agent: ulidA, Run: "run-" + ulidA, Writer: ulidB, Ordinal: 100}
	require.Equal(t, nats.Header{"H": {"t,2s,~AZNAAAAAAAAAAAAAAAAAAA,_____________________w"}}, header(layout.LogSubject(ulidA, 0), e))
	e.Agent, e.Call, e.Type = "other", "call_1", "tool_end"
	require.Equal(t, nats.Header{"H": {"c.tool_end,2s,~AZNAAAAAAAAAAAAAAAAAAA,_____________________w,other,call_1"}}, header(layout.LogSubject(ulidA, 0), e))
	require.Equal(t, nats.Header{"H": {"f.erased"}}, header(layout.LogSubject("s", 0), eventlog.Envelope{Kind: "fact", Type: "erased", Agent: "s"}))
	require.Equal(t, map[string]string{"a": "tool_arg_stream_delta", "h": "thinking", "t": "text_delta"}, envelopeCodes)
}

// FuzzEnvelope: no header causes a panic, and an id is decoded unchanged.
func FuzzEnvelope(f *testing.F) {
	f.Add("t,2s,~AZNAAAAAAAAAAAAAAAAAAA,,-,'x", "helix.log.0.s", "a,b")
	f.Add("c.x", "", ulidA)
	f.Fuzz(func(t *testing.T, value, subject, id string) {
		envelopeOf(subject, nats.Header{HeaderEnvelope: {value}})
		e := eventlog.Envelope{Kind: eventlog.Kind(id), Type: id, Agent: id, Run: id, Writer: id, Call: id}
		got := envelopeOf(layout.LogSubject("s", 0), header(layout.LogSubject("s", 0), e))
		id = strings.ToValidUTF8(id, "\ufffd")
		require.Equal(t, eventlog.Envelope{Kind: eventlog.Kind(id), Type: id, Agent: id, Run: id, Writer: id, Call: id}, got)
	})
}

// TestAShortDeltaIsDecodedUnchanged: a log with group sync stores of a delta only what
// its envelope does not contain, and every reader gets the payload that was appended,
// byte for byte.
func TestAShortDeltaIsDecodedUnchanged(t *testing.T) {
	base := eventlog.Base{AgentID: "a \"b\"", AgentType: "typ\"e\\ü", Timestamp: 1795649867995, Step: 12}
	other := base
	other.AgentID = "other"
	for _, c := range []struct {
		chunk eventlog.Chunk
		call  string
		short bool
	}{
		{&eventlog.TextDelta{Delta: "say \"hi\"\n\\,\x00<&>\u2028\xff", Base: base}, "", true},
		{&eventlog.TextDelta{Base: base}, "", true},
		{&eventlog.Thinking{Content: "so", Base: base}, "", true},
		{&eventlog.Thinking{IsComplete: true, Base: base}, "", false},
		{&eventlog.ToolArgStreamDelta{ToolCallID: "c,1", Delta: "{\"a\":", Base: base}, "c,1", true},
		{&eventlog.ToolArgStreamDelta{ToolCallID: "c,1", Delta: "{", Base: base}, "", false},
		{&eventlog.TextDelta{Delta: "x", Base: other}, "", true},
	} {
		e, err := eventlog.NewChunk(c.chunk, eventlog.Labels{Call: c.call})
		require.NoError(t, err)
		m := NewMessage(layout.LogSubject("a \"b\"", 0), Stored{Record: eventlog.Record{Entry: e}}, true)
		require.Equal(t, c.short, isShort(m.Header), "%s", e.Payload)
		require.Equal(t, c.short, len(m.Data) < len(e.Payload))
		r := StoredAt(m.Subject, 1, time.Time{}, overTheWire(t, m.Header), m.Data)
		require.Equal(t, string(e.Payload), string(r.Payload))
		require.Equal(t, e.Envelope, r.Envelope)
	}
	for _, data := range []string{"", "x", "1,2", `1,2"`, `1,2"a`, `1,2"a\"`, `,"a"b`, `1"a"b`} {
		r := StoredAt(layout.LogSubject("s", 0), 1, time.Time{}, nats.Header{HeaderEnvelope: {"T"}}, []byte(data))
		require.Empty(t, r.Kind, "%q: helixd did not write it", data)
		require.Equal(t, data, string(r.Payload))
	}
}
