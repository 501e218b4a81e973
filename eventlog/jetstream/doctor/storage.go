package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// tokens is the number of tokens for which storage reports the bytes. A token is a
	// record with a word.
	tokens = 1_000_000
	// typicalLogged and typicalSealed are the bytes of such a record in the log and in a
	// segment, by BenchmarkStored.
	typicalLogged = 320
	typicalSealed = 14
	// sampledPartitions is from how many partitions storage reads the last segment.
	sampledPartitions = 16
)

// storage reports how many bytes a million records take: from the log's own segments, or
// the measured values if there are none.
func (x *exam) storage(ctx context.Context) error {
	var logged, messages uint64
	var sealed, records int
	for p := range min(len(x.logStreams()), sampledPartitions) {
		for _, s := range x.existing(func(w want) bool { return w.log && w.config.Name == layout.LogStream(p) }) {
			logged, messages = logged+s.State.Bytes, messages+s.State.Msgs
		}
		b, n, err := x.lastSegment(ctx, p)
		if errors.Is(err, link.ErrNoMessage) { // the other requests would fail, too
			break
		}
		if err != nil {
			return err
		}
		sealed, records = sealed+b, records+n
	}
	inLog, inSegments := "", ""
	bytes := uint64(typicalLogged)
	if messages > 0 {
		bytes, inLog = logged/messages, " here"
	}
	ofSegment := uint64(typicalSealed)
	if records > 0 {
		ofSegment, inSegments = uint64(sealed/records), " here"
	}
	x.OK(CheckStorage, "a million tokens, each a record: %s in the log%s (%s a record), and %s in sealed segments%s (%s a record)",
		size(tokens*bytes), inLog, size(bytes), size(tokens*ofSegment), inSegments, size(ofSegment))
	return nil
}

// lastSegment returns the size of a partition's last segment, in bytes and in records, 0
// if there is none that can be read.
func (x *exam) lastSegment(ctx context.Context, p int) (bytes, records int, err error) {
	stream := layout.SegmentStream(p)
	if len(x.existing(func(w want) bool { return w.config.Name == stream })) == 0 || x.denied["$JS.API.STREAM.MSG.GET."+stream] {
		return 0, 0, nil
	}
	try, cancel := context.WithTimeout(ctx, link.AnswerTimeout)
	defer cancel()
	what, err := json.Marshal(map[string]string{"last_by_subj": fmt.Sprintf("%s%d.*", layout.SegmentSubjects, p)})
	if err != nil {
		return 0, 0, err
	}
	// The log also reads from this subject: a user that may read may use it.
	answer, err := x.nc.RequestWithContext(try, "$JS.API.STREAM.MSG.GET."+stream, what)
	if err != nil {
		return 0, 0, cmp.Or(context.Cause(ctx), link.ErrNoMessage)
	}
	var got struct {
		Message struct {
			Subject string `json:"subject"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if json.Unmarshal(answer.Data, &got) != nil || got.Message.Subject == "" {
		return 0, 0, nil // there is none
	}
	packed, err := wire.Unpack(got.Message.Data)
	if err != nil { // helixd verify reports it
		return 0, 0, nil
	}
	return wire.MessageOverhead + len(got.Message.Subject) + wire.SegmentHeaders + len(got.Message.Data), len(packed.Records), nil
}
