package jetstream

import (
	"context"
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

// secureDelete overwrites a message's bytes, but in a stream that is scrubbed. One
// that is gone is no error.
func (l *streamSet) secureDelete(ctx context.Context, stream string, seq uint64) error {
	if l.scrubs(stream) {
		return l.remove(ctx, stream, seq)
	}
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.SecureDeleteMsg)
}

// remove deletes a message; its bytes stay until its block is compacted.
func (l *streamSet) remove(ctx context.Context, stream string, seq uint64) error {
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.DeleteMsg)
}

func (l *streamSet) deleteMessage(ctx context.Context, stream string, seq uint64, by func(natsjs.Stream, context.Context, uint64) error) error {
	err := settle(ctx, l.nc, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, stream)
		if err == nil {
			err = l.step(ctx, "delete", func(ctx context.Context) error { return by(s, ctx, seq) })
		}
		return err
	})
	if err == nil {
		return nil
	}
	// The server's answer does not tell one that is gone from other failures.
	if _, gerr := l.messageAt(ctx, stream, seq); errors.Is(gerr, errNoMessage) {
		return nil
	}
	return fmt.Errorf("jetstream: delete %d of %s: %w", seq, stream, err)
}
