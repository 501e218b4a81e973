package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Headers of a record, besides HeaderEnvelope.
const (
	// Headers of versions before HeaderEnvelope.
	HeaderKind    = "Helix-Kind"
	headerType    = "Helix-Type"
	headerAgent   = "Helix-Agent"
	headerRun     = "Helix-Run"
	headerCall    = "Helix-Call"
	headerWriter  = "Helix-Writer"
	headerOrdinal = "Helix-Ordinal"
	// The origin of an imported record.
	headerOriginSequence = "Helix-Origin-Sequence"
	headerOriginTime     = "Helix-Origin-Time" // RFC 3339 with nanoseconds, UTC
	// HeaderPrevious is set if JetStream's comparison can't contain it: the record before
	// was purged.
	HeaderPrevious = "Helix-Previous"
	// HeaderSealed is the last record of the segments that an append follows which found
	// nothing else of the session. See dropStray of package store.
	HeaderSealed = "Helix-Sealed"
	// HeaderAfter is the record after which a blob was stored.
	HeaderAfter = "Helix-After"
	// HeaderSince is on each record of an append that creates a session with blobs, and
	// on the blobs: the last sequence of the log before they were stored.
	HeaderSince = "Helix-Since"
	// headerBlob is the address of a payload that is too large for a message.
	headerBlob = "Helix-Blob"
)

// Headers that JetStream defines.
const (
	HeaderExpectedLast  = "Nats-Expected-Last-Subject-Sequence"
	HeaderBatchID       = "Nats-Batch-Id"
	HeaderBatchSequence = "Nats-Batch-Sequence"
	HeaderBatchCommit   = "Nats-Batch-Commit"
	HeaderSubject       = "Nats-Subject"
	HeaderSequence      = "Nats-Sequence"
	HeaderLastSequence  = "Nats-Last-Sequence"
	HeaderTimeStamp     = "Nats-Time-Stamp"
	HeaderPending       = "Nats-Num-Pending"
	HeaderUpTo          = "Nats-UpTo-Sequence"
	HeaderStatus        = "Status"
)

// NewMessage returns a record's message. If mayShorten is set and the record is a delta,
// its payload is the short one.
func NewMessage(subject string, e Stored, mayShorten bool) *nats.Msg {
	session, _ := layout.Untoken(subject[strings.LastIndexByte(subject, '.')+1:])
	data, short := e.Payload, false
	if mayShorten && e.Blob == "" {
		if b, ok := e.ShortDelta(); ok {
			data, short = b, true
		}
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{HeaderEnvelope: {packEnvelope(session, &e.Envelope, short)}}}
	if e.Blob != "" {
		m.Header[headerBlob] = []string{e.Blob}
	}
	if e.Origin != (eventlog.Origin{}) {
		m.Header[headerOriginSequence] = []string{strconv.FormatUint(e.Origin.Sequence, 10)}
		m.Header[headerOriginTime] = []string{e.Origin.Time.Format(time.RFC3339Nano)}
	}
	return m
}

// Message is a stored message.
type Message struct {
	Subject  string
	Sequence uint64
	At       time.Time // when it was stored, by the server's clock
	Header   nats.Header
	Data     []byte
}

func LastSequence(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(First(h, HeaderLastSequence), 10, 64)
	return n
}

// DirectMessage returns the message in an answer to a direct get.
func DirectMessage(reply *nats.Msg) (Message, error) {
	r, err := RecordOf(reply.Header, reply.Data)
	return Message{
		Subject: First(reply.Header, HeaderSubject), Sequence: r.Sequence, At: r.Time, Header: reply.Header, Data: reply.Data,
	}, err
}

// IsErased reports whether a message is the tombstone of an erased session.
func IsErased(h nats.Header) bool {
	kind, typ := kindOf(h)
	return kind == eventlog.KindFact && typ == ErasedType
}

var ErasedType = (*fact.Erased)(nil).Type()

func SequenceOf(m *nats.Msg) (uint64, error) {
	n, err := strconv.ParseUint(First(m.Header, HeaderSequence), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: message without a sequence", ErrDamaged)
	}
	return n, nil
}

// HeaderStream is the first header that a server adds to a message's own.
const HeaderStream = "Nats-Stream"

// HeaderPlacesParts is how many messages a table of sessions has.
const HeaderPlacesParts = "Helix-Parts"
