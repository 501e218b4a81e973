package jetstream

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// Headers of a record, beside headerEnvelope.
const (
	// Those of versions before headerEnvelope.
	headerKind    = "Helix-Kind"
	headerType    = "Helix-Type"
	headerAgent   = "Helix-Agent"
	headerRun     = "Helix-Run"
	headerCall    = "Helix-Call"
	headerWriter  = "Helix-Writer"
	headerOrdinal = "Helix-Ordinal"
	// Where an imported record comes from.
	headerOriginSequence = "Helix-Origin-Sequence"
	headerOriginTime     = "Helix-Origin-Time" // RFC 3339 with nanoseconds, UTC
	// headerPrevious is set where JetStream's comparison can't tell it: the
	// record before was purged.
	headerPrevious = "Helix-Previous"
	// headerSealed is the last record of the segments that an append was to
	// follow which found nothing else of the session. See dropStray.
	headerSealed = "Helix-Sealed"
	// headerAfter is the record after which a blob was stored.
	headerAfter = "Helix-After"
	// headerSince is on each record of an append that creates a session with large payloads,
	// and on these: the last sequence of the log before they were stored.
	headerSince = "Helix-Since"
	// headerBlob tells where a payload is that is too large for a message.
	headerBlob = "Helix-Blob"
)

// Headers that JetStream defines.
const (
	headerExpectedLast  = "Nats-Expected-Last-Subject-Sequence"
	headerBatchID       = "Nats-Batch-Id"
	headerBatchSequence = "Nats-Batch-Sequence"
	headerBatchCommit   = "Nats-Batch-Commit"
	headerSubject       = "Nats-Subject"
	headerSequence      = "Nats-Sequence"
	headerLastSequence  = "Nats-Last-Sequence"
	headerTimeStamp     = "Nats-Time-Stamp"
	headerPending       = "Nats-Num-Pending"
	headerUpTo          = "Nats-UpTo-Sequence"
	headerStatus        = "Status"
)

// newMessage is a record's message, with a short payload if it may and the record is a delta.
func newMessage(subject string, e stored, mayShorten bool) *nats.Msg {
	session, _ := Untoken(subject[strings.LastIndexByte(subject, '.')+1:])
	data, short := e.Payload, false
	if mayShorten && e.blob == "" {
		if b, ok := e.ShortDelta(); ok {
			data, short = b, true
		}
	}
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{headerEnvelope: {packEnvelope(session, &e.Envelope, short)}}}
	if e.blob != "" {
		m.Header[headerBlob] = []string{headerValue(e.blob)}
	}
	if e.Origin != (eventlog.Origin{}) {
		m.Header[headerOriginSequence] = []string{strconv.FormatUint(e.Origin.Sequence, 10)}
		m.Header[headerOriginTime] = []string{e.Origin.Time.Format(time.RFC3339Nano)}
	}
	return m
}
