package link

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

// Messages implements [jetstream.Messages].
func Messages(ctx context.Context, nc *nats.Conn, stream, filter string) iter.Seq2[*natsjs.RawStreamMsg, error] {
	return func(yield func(*natsjs.RawStreamMsg, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("jetstream: stream %s: %w", stream, err)) }
		js, err := NewJetStream(nc)
		if err != nil {
			fail(err)
			return
		}
		var s natsjs.Stream
		err = Settle(ctx, nc, func(ctx context.Context) (err error) {
			s, err = js.Stream(ctx, stream)
			return err
		})
		if errors.Is(err, natsjs.ErrStreamNotFound) {
			return
		}
		for at := uint64(1); err == nil; at++ {
			var m *natsjs.RawStreamMsg
			err = Settle(ctx, nc, func(ctx context.Context) (err error) {
				m, err = s.GetMsg(ctx, at, natsjs.WithGetMsgSubject(filter))
				return err
			})
			if errors.Is(err, natsjs.ErrMsgNotFound) {
				return
			}
			if err == nil {
				at = m.Sequence
				if !yield(m, nil) {
					return
				}
			}
		}
		fail(err)
	}
}
