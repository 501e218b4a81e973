package streams

import (
	"context"
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

// SecureDelete removes a message and overwrites its bytes, except in a stream that is
// scrubbed. A message that does not exist is no error.
func (l *Set) SecureDelete(ctx context.Context, stream string, seq uint64) error {
	if l.Scrubs(stream) {
		return l.Remove(ctx, stream, seq)
	}
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.SecureDeleteMsg)
}

// Remove removes a message; its bytes stay until its block is compacted. A message that
// does not exist is no error.
func (l *Set) Remove(ctx context.Context, stream string, seq uint64) error {
	return l.deleteMessage(ctx, stream, seq, natsjs.Stream.DeleteMsg)
}

func (l *Set) deleteMessage(ctx context.Context, stream string, seq uint64, by func(natsjs.Stream, context.Context, uint64) error) error {
	err := link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		s, err := l.JS.Stream(ctx, stream)
		if err == nil {
			err = l.Step(ctx, "delete", func(ctx context.Context) error { return by(s, ctx, seq) })
		}
		return err
	})
	if err == nil {
		return nil
	}
	// The server's answer does not distinguish a missing message from other failures.
	switch _, gerr := l.MessageAt(ctx, stream, seq); {
	case errors.Is(gerr, link.ErrNoMessage):
		return nil
	case gerr != nil: // ctx may have ended; the caller must see that
		err = fmt.Errorf("%w; %w", err, gerr)
	}
	return fmt.Errorf("jetstream: delete %d of %s: %w", seq, stream, err)
}
