package jetstream

import (
	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// LiveRecord decodes a message that a NATS subscriber received on [LiveSubject], written
// by this version or by an earlier one. It returns the record and the sequence of the
// session's record before it, 0 if there is none. The kind is empty if helixd did not
// write the message. A payload over 256 KiB is not in the message: the record has a
// placeholder instead. It returns an error if the message has no sequence, since it does
// not come from a log then.
func LiveRecord(m *nats.Msg) (r eventlog.Record, previous uint64, err error) {
	s, err := wire.RecordOf(m.Header, m.Data)
	return s.Record, wire.LastSequence(m.Header), err
}
