package jetstream

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// Headers of a record's envelope.
const (
	headerKind    = "Helix-Kind"
	headerType    = "Helix-Type"
	headerAgent   = "Helix-Agent"
	headerRun     = "Helix-Run"
	headerCall    = "Helix-Call"
	headerWriter  = "Helix-Writer"
	headerOrdinal = "Helix-Ordinal"
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
	headerStatus        = "Status"
)

func newMessage(subject string, e eventlog.Entry) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: e.Payload, Header: nats.Header{
		headerKind: {string(e.Kind)},
		headerType: {headerValue(e.Type)},
	}}
	set := func(name, value string) {
		if value != "" {
			m.Header[name] = []string{headerValue(value)}
		}
	}
	set(headerAgent, e.Agent)
	set(headerRun, e.Run)
	set(headerCall, e.Call)
	set(headerWriter, e.Writer)
	if e.Ordinal > 0 {
		set(headerOrdinal, strconv.FormatUint(e.Ordinal, 10))
	}
	return m
}

// recordOf reads a stored message. One that helixd did not write (no
// Helix-Kind) becomes a record of an empty kind, which folds park.
func recordOf(h nats.Header, data []byte) (eventlog.Record, error) {
	seq, err := strconv.ParseUint(first(h, headerSequence), 10, 64)
	if err != nil {
		return eventlog.Record{}, fmt.Errorf("jetstream: message without a sequence: %w", err)
	}
	at, _ := time.Parse(time.RFC3339Nano, first(h, headerTimeStamp))
	ordinal, _ := strconv.ParseUint(first(h, headerOrdinal), 10, 64)
	return eventlog.Record{Sequence: seq, Time: at, Entry: eventlog.Entry{
		Envelope: eventlog.Envelope{
			Kind:    eventlog.Kind(first(h, headerKind)),
			Type:    unescaped(h, headerType),
			Agent:   unescaped(h, headerAgent),
			Run:     unescaped(h, headerRun),
			Call:    unescaped(h, headerCall),
			Writer:  unescaped(h, headerWriter),
			Ordinal: ordinal,
		},
		Payload: data,
	}}, nil
}

func unescaped(h nats.Header, name string) string {
	v := first(h, name)
	if s, err := url.PathUnescape(v); err == nil {
		return s
	}
	return v
}

func first(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
