package jetstream

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
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
	return newMessage(subject, stored{Record: eventlog.Record{Entry: eventlog.Entry{Envelope: e}}}, false).Header
}

// overTheWire is what a client gets of headers that another one sent.
func overTheWire(t testing.TB, h nats.Header) nats.Header {
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	require.NoError(t, http.Header(h).Write(&b))
	b.WriteString("\r\n")
	got, err := nats.DecodeHeadersMsg([]byte(b.String()))
	require.NoError(t, err)
	return got
}

func TestEnvelopesComeBackAsTheyWere(t *testing.T) {
	for _, session := range []string{"s", "a b/é.*", ulidA, "-"} {
		for _, e := range envelopes {
			h := overTheWire(t, header(logSubject(session, 3), e))
			require.Equal(t, e, envelopeOf(logSubject(session, 3), h), "%v", h)
			require.Len(t, h, 1)
		}
	}
}

// TestEnvelopesInHeadersOfTheirOwnAreRead: as versions before headerEnvelope wrote them.
func TestEnvelopesInHeadersOfTheirOwnAreRead(t *testing.T) {
	for _, e := range envelopes {
		h := nats.Header{}
		for name, v := range map[string]string{
			headerKind: string(e.Kind), headerType: e.Type, headerAgent: e.Agent, headerRun: e.Run, headerCall: e.Call, headerWriter: e.Writer,
			headerOrdinal: strconv.FormatUint(e.Ordinal, 10),
		} {
			if v != "" && v != "0" {
				h[name] = []string{headerValue(v)}
			}
		}
		require.Equal(t, e, envelopeOf(logSubject("s", 0), overTheWire(t, h)))
		require.Equal(t, e.Kind == eventlog.KindFact && e.Type == erasedType, isErased(h))
	}
}

// TestTheEnvelopeIsShort: the form is frozen; what is in logs stays readable.
func TestTheEnvelopeIsShort(t *testing.T) {
	e := eventlog.Envelope{Kind: "chunk", Type: "text_delta", Agent: ulidA, Run: "run-" + ulidA, Writer: ulidB, Ordinal: 100}
	require.Equal(t, nats.Header{"H": {"t,2s,~AZNAAAAAAAAAAAAAAAAAAA,_____________________w"}}, header(logSubject(ulidA, 0), e))
	e.Agent, e.Call, e.Type = "other", "call_1", "tool_end"
	require.Equal(t, nats.Header{"H": {"c.tool_end,2s,~AZNAAAAAAAAAAAAAAAAAAA,_____________________w,other,call_1"}}, header(logSubject(ulidA, 0), e))
	require.Equal(t, nats.Header{"H": {"f.erased"}}, header(logSubject("s", 0), eventlog.Envelope{Kind: "fact", Type: "erased", Agent: "s"}))
	require.Equal(t, map[string]string{"a": "tool_arg_stream_delta", "h": "thinking", "t": "text_delta"}, envelopeCodes)
}

// TestALogOfAnOlderVersionGoesOn: its records, and those that this version appends after them,
// are one session.
func TestALogOfAnOlderVersionGoesOn(t *testing.T) {
	l := openLog(t, nil)
	var want []eventlog.Entry
	head := uint64(0)
	for i := range 20 {
		e := textEntry(i)
		m := &nats.Msg{Subject: logSubject("s", 0), Data: e.Payload, Header: nats.Header{
			headerKind: {"chunk"}, headerType: {"text_delta"}, headerAgent: {"s"}, headerWriter: {"w"}, headerOrdinal: {fmt.Sprint(i + 1)},
			headerExpectedLast: {strconv.FormatUint(head, 10)},
		}}
		var err error
		head, err = l.publish(t.Context(), []*nats.Msg{m})
		require.NoError(t, err)
		want = append(want, e)
	}
	for i := 20; i < 40; i++ {
		e := textEntry(i)
		head = appended(t, l, "s", head, []eventlog.Entry{e})
		want = append(want, e)
	}
	requireRecords(t, l, "s", want)
	require.NoError(t, l.Seal(t.Context(), "s"))
	sealedTo(t, l, "s", head)
	requireRecords(t, l, "s", want)
}

// FuzzEnvelope: no header panics, and an id comes back as it was.
func FuzzEnvelope(f *testing.F) {
	f.Add("t,2s,~AZNAAAAAAAAAAAAAAAAAAA,,-,'x", "helix.log.0.s", "a,b")
	f.Add("c.x", "", ulidA)
	f.Fuzz(func(t *testing.T, value, subject, id string) {
		envelopeOf(subject, nats.Header{headerEnvelope: {value}})
		e := eventlog.Envelope{Kind: eventlog.Kind(id), Type: id, Agent: id, Run: id, Writer: id, Call: id}
		got := envelopeOf(logSubject("s", 0), header(logSubject("s", 0), e))
		id = strings.ToValidUTF8(id, "\ufffd")
		require.Equal(t, eventlog.Envelope{Kind: eventlog.Kind(id), Type: id, Agent: id, Run: id, Writer: id, Call: id}, got)
	})
}

// TestAShortDeltaIsReadAsItWas: a log that syncs for all stores of a delta what its envelope
// does not tell, and every reader gets the payload that was appended, byte for byte.
func TestAShortDeltaIsReadAsItWas(t *testing.T) {
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
		m := newMessage(logSubject("a \"b\"", 0), stored{Record: eventlog.Record{Entry: e}}, true)
		require.Equal(t, c.short, isShort(m.Header), "%s", e.Payload)
		require.Equal(t, c.short, len(m.Data) < len(e.Payload))
		r := storedAt(m.Subject, 1, time.Time{}, overTheWire(t, m.Header), m.Data)
		require.Equal(t, string(e.Payload), string(r.Payload))
		require.Equal(t, e.Envelope, r.Envelope)
	}
	for _, data := range []string{"", "x", "1,2", `1,2"`, `1,2"a`, `1,2"a\"`, `,"a"b`, `1"a"b`} {
		r := storedAt(logSubject("s", 0), 1, time.Time{}, nats.Header{headerEnvelope: {"T"}}, []byte(data))
		require.Empty(t, r.Kind, "%q: helixd did not write it", data)
		require.Equal(t, data, string(r.Payload))
	}
}

// TestALogRecordIsSmall tells what a word of a model takes in the log beside its payload:
// JetStream's own share, and the envelope's.
func TestALogRecordIsSmall(t *testing.T) {
	s := speak(docWords(t), 7, false)
	var all, envelope int
	const records = 2000
	for i := range records {
		subject := logSubject(s.session, 0)
		m := newMessage(subject, stored{Record: eventlog.Record{Entry: s.next(t)}, linked: true}, true)
		m.Header[headerExpectedLast] = []string{strconv.Itoa(100_000 + i)}
		var b strings.Builder
		require.NoError(t, http.Header(m.Header).Write(&b))
		all += messageOverhead + len(subject) + len("NATS/1.0\r\n") + b.Len() + len("\r\n") + len(m.Data)
		envelope += len(headerEnvelope) + len(": \r\n") + len(m.Header[headerEnvelope][0])
	}
	t.Logf("%.1f bytes a record, %.1f for a byte of text; %.1f of them are the envelope", float64(all)/records, float64(all)/float64(s.text), float64(envelope)/records)
	require.LessOrEqual(t, envelope/records, 57)
	require.LessOrEqual(t, float64(all)/float64(s.text), 40.0)
}
