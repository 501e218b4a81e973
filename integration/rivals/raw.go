package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	rawStream   = "RAW"
	rawSubjects = "raw."
	// rawTimeout is how long a publish may take.
	rawTimeout = 10 * time.Second
)

// rawSessions is JetStream as it is: one plain file stream, one connection
// inside the process, one publish a record, no header but the comparison. With fsync, one
// sync for all who wait follows the answers.
type rawSessions struct {
	*helix
	templates []template
	heads     []uint64
}

// newRaw starts on a fresh folder.
func (b *bench) newRaw(ctx context.Context, m mode, sessions int) (*rawSessions, error) {
	dir, err := b.tempDir("jetstream")
	if err != nil {
		return nil, err
	}
	h, err := startNATS(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	_, err = h.js.CreateStream(ctx, natsjs.StreamConfig{
		Name: rawStream, Subjects: []string{rawSubjects + "*"}, Storage: natsjs.FileStorage,
	})
	if err != nil {
		h.discard()
		return nil, err
	}
	return &rawSessions{helix: h, templates: templates(sessions), heads: make([]uint64, sessions)}, nil
}

func (r *rawSessions) figure(value float64) figure {
	return figure{System: "raw JetStream", Durability: string(r.durability), Value: value}
}

// append is an appendFunc: each record waits for the one before, since it is
// compared with its sequence.
func (r *rawSessions) append(ctx context.Context, s, first, n int) error {
	ctx, cancel := context.WithTimeout(ctx, rawTimeout)
	defer cancel()
	for i := first; i < first+n; i++ {
		answer, err := r.nc.RequestMsgWithContext(ctx, &nats.Msg{
			Subject: rawSubjects + sessionName(s),
			Header:  nats.Header{natsjs.ExpectedLastSubjSeqHeader: {strconv.FormatUint(r.heads[s], 10)}},
			Data:    r.templates[s].payload(i),
		})
		if err != nil {
			return err
		}
		var ack struct {
			Sequence uint64          `json:"seq"`
			Error    json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &ack); err != nil {
			return err
		}
		if ack.Error != nil {
			return fmt.Errorf("raw JetStream: %s", ack.Error)
		}
		if err := r.srv.Sync(ctx); err != nil {
			return err
		}
		r.heads[s] = ack.Sequence
	}
	return nil
}

// appendAsync publishes without comparison, as many as the client's window
// takes in flight.
func (r *rawSessions) appendAsync(ctx context.Context, s, first, n int) error {
	js, err := natsjs.New(r.nc, natsjs.WithPublishAsyncMaxPending(4000))
	if err != nil {
		return err
	}
	acks := make([]natsjs.PubAckFuture, 0, n)
	for i := first; i < first+n; i++ {
		ack, err := js.PublishAsync(rawSubjects+sessionName(s), r.templates[s].payload(i), natsjs.WithStallWait(rawTimeout))
		if err != nil {
			return err
		}
		acks = append(acks, ack)
	}
	for _, a := range acks {
		select {
		case <-a.Ok():
		case err := <-a.Err():
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// verify checks that the stream holds that many records.
func (r *rawSessions) verify(ctx context.Context, counts []int) error {
	stream, err := r.js.Stream(ctx, rawStream)
	if err != nil {
		return err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if got := stream.CachedInfo().State.Msgs; int(got) != total {
		return fmt.Errorf("raw JetStream: the stream has %d records, not %d", got, total)
	}
	return nil
}
