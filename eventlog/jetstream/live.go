package jetstream

import (
	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// LiveRecord reads a message that a NATS subscriber received on [LiveSubject], written by this
// version or by an older one, and the sequence of the session's record before it, 0 if there is
// none. The kind is empty if helixd did not write the message. A payload over 256 KiB is not in
// the message: the record has a placeholder in its place. The error is that the message has no
// sequence: it does not come from a log.
func LiveRecord(m *nats.Msg) (r eventlog.Record, previous uint64, err error) {
	s, err := wire.RecordOf(m.Header, m.Data)
	return s.Record, wire.LastSequence(m.Header), err
}
