package wire

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// HeaderEnvelope is the header with a record's envelope: comma-separated, without the
// empty fields at its end,
//
//	kind and type   c.<type> for a chunk, f.<type> for a fact, or a code of envelopeCodes; in
//	                capitals: the payload is what eventlog.Entry.ShortDelta returns
//	ordinal         in base 36
//	run
//	writer
//	agent           empty: the session itself; -: none
//	call
//
// A ULID is its 16 bytes in URL-safe base64, after ~ if it has runPrefix before it. Any
// other text is percent-encoded where it is not plain ASCII, a comma or a percent sign.
// It has a ' before it if it could be mistaken for one of these, for - or for a text with
// a ' before it.
//
// Messages of earlier versions have a header for each field, headerKind to headerOrdinal.
const HeaderEnvelope = "H"

// envelopeCodes are the codes of the chunks of which a model emits one for each token.
// They can't change: logs have them.
var envelopeCodes = map[string]string{
	"a": (*eventlog.ToolArgStreamDelta)(nil).Type(),
	"h": (*eventlog.Thinking)(nil).Type(),
	"t": (*eventlog.TextDelta)(nil).Type(),
}

var codesOfTypes = func() map[string]string {
	codes := map[string]string{}
	for code, t := range envelopeCodes {
		codes[t] = code
	}
	return codes
}()

// Kinds before the dot of a kind and type.
const (
	shortChunk = "c"
	shortFact  = "f"
	noAgent    = "-"
)

// packEnvelope returns HeaderEnvelope for a record of a session, without its origin;
// short: its payload is a short one.
func packEnvelope(session string, e *eventlog.Envelope, short bool) string {
	b := make([]byte, 0, 80)
	code, coded := codesOfTypes[e.Type]
	if short {
		code = strings.ToUpper(code)
	}
	switch {
	case coded && e.Kind == eventlog.KindChunk:
		b = append(b, code...)
	case e.Kind == eventlog.KindChunk:
		b = append(append(b, shortChunk...), '.')
		b = append(b, envelopeText(e.Type)...)
	case e.Kind == eventlog.KindFact:
		b = append(append(b, shortFact...), '.')
		b = append(b, envelopeText(e.Type)...)
	default:
		b = append(append(b, envelopeKind(e.Kind)...), '.')
		b = append(b, envelopeText(e.Type)...)
	}
	full := len(b)
	b = append(b, ',')
	if e.Ordinal > 0 {
		b = strconv.AppendUint(b, e.Ordinal, 36)
		full = len(b)
	}
	agent := ""
	switch e.Agent {
	case session:
	case "":
		agent = noAgent
	default:
		agent = envelopeID(e.Agent)
	}
	for _, field := range []string{envelopeID(e.Run), envelopeID(e.Writer), agent, envelopeID(e.Call)} {
		b = append(append(b, ','), field...)
		if field != "" {
			full = len(b)
		}
	}
	return string(b[:full])
}

// kindOf returns a message's kind and type, empty if helixd did not write it.
func kindOf(h nats.Header) (kind eventlog.Kind, typ string) {
	v := First(h, HeaderEnvelope)
	if v == "" {
		return eventlog.Kind(strings.ToValidUTF8(First(h, HeaderKind), "\ufffd")), unescaped(h, headerType)
	}
	code, _, _ := strings.Cut(v, ",")
	if t := envelopeCodes[strings.ToLower(code)]; t != "" {
		return eventlog.KindChunk, t
	}
	k, t, ok := strings.Cut(code, ".")
	if !ok {
		return "", ""
	}
	switch k {
	case shortChunk:
		return eventlog.KindChunk, plainText(t)
	case shortFact:
		return eventlog.KindFact, plainText(t)
	}
	return eventlog.Kind(plainText(k)), plainText(t)
}

// isShort reports whether a message has the payload of a delta as eventlog.Entry.ShortDelta
// returns it.
func isShort(h nats.Header) bool {
	v := First(h, HeaderEnvelope)
	code, _, _ := strings.Cut(v, ",")
	return len(code) == 1 && code[0] <= 'Z' && envelopeCodes[strings.ToLower(code)] != ""
}

// envelopeOf decodes a message's envelope, in either form. A field that can't be decoded
// is empty.
func envelopeOf(subject string, h nats.Header) (e eventlog.Envelope) {
	e.Kind, e.Type = kindOf(h)
	e.Origin = originOf(h)
	v := First(h, HeaderEnvelope)
	if code, _, _ := strings.Cut(v, ","); v != "" && envelopeCodes[strings.ToLower(code)] == "" && !strings.Contains(code, ".") {
		return eventlog.Envelope{Origin: e.Origin} // another program's header of this name
	}
	if v == "" {
		e.Agent, e.Run, e.Call, e.Writer = unescaped(h, headerAgent), unescaped(h, headerRun), unescaped(h, headerCall), unescaped(h, headerWriter)
		e.Ordinal, _ = strconv.ParseUint(First(h, headerOrdinal), 10, 64)
		return e
	}
	_, v, _ = strings.Cut(v, ",")
	field := func() (f string) {
		f, v, _ = strings.Cut(v, ",")
		return f
	}
	e.Ordinal, _ = strconv.ParseUint(field(), 36, 64)
	e.Run, e.Writer = plainID(field()), plainID(field())
	switch agent := field(); agent {
	case "":
		e.Agent, _ = layout.Untoken(subject[strings.LastIndexByte(subject, '.')+1:])
	case noAgent:
	default:
		e.Agent = plainID(agent)
	}
	e.Call = plainID(field())
	return e
}

const (
	// packedULID is the length of a ULID in a header.
	packedULID = 22
	runPrefix  = "run-"
	shortRun   = "~"
)

// envelopeID encodes an id.
func envelopeID(id string) string {
	short, of := "", id
	if bare, ok := strings.CutPrefix(id, runPrefix); ok {
		short, of = shortRun, bare
	}
	if len(of) == ulid.EncodedSize {
		var u ulid.ULID
		if u.UnmarshalText([]byte(of)) == nil && u.String() == of {
			return short + base64.RawURLEncoding.EncodeToString(u[:])
		}
	}
	text := envelopeText(id)
	if len(text) == packedULID || text == noAgent || strings.HasPrefix(text, shortRun) || strings.HasPrefix(text, "'") {
		return "'" + text
	}
	return text
}

func plainID(field string) string {
	if text, ok := strings.CutPrefix(field, "'"); ok {
		return plainText(text)
	}
	long, packed := "", field
	if bare, ok := strings.CutPrefix(field, shortRun); ok {
		long, packed = runPrefix, bare
	}
	if len(packed) == packedULID {
		var u ulid.ULID
		if n, err := base64.RawURLEncoding.Decode(u[:], []byte(packed)); err == nil && n == len(u) {
			return long + u.String()
		}
	}
	return plainText(field)
}

func envelopeText(s string) string {
	return layout.Escape(s, func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' && c != ',' })
}

// envelopeKind encodes a kind that later versions may have.
func envelopeKind(k eventlog.Kind) string {
	if k == shortChunk || k == shortFact {
		return "%" + strconv.FormatInt(int64(k[0]), 16)
	}
	return layout.Escape(string(k), func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' && c != ',' && c != '.' })
}

func plainText(v string) string {
	if s, err := url.PathUnescape(v); err == nil {
		v = s
	}
	return strings.ToValidUTF8(v, "\ufffd")
}
