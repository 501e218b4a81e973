package subscriber

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// A copied revocation keeps its generation and its time in these headers. The sequences of
// the stream that has it begin after the copied stream's, so that a later generation is
// greater than any that was issued. A program that does not know the headers takes the
// sequence for the generation: rights that were issued after the revocation are then
// revoked, too.
const (
	headerGeneration = "Helix-Generation"
	headerRevoked    = "Helix-Revoked" // milliseconds since the epoch
)

// revocationOf returns the revocation that a message stores.
func revocationOf(m *natsjs.RawStreamMsg) revocation {
	v := revocation{m.Sequence, m.Time}
	if n, err := strconv.ParseUint(m.Header.Get(headerGeneration), 10, 64); err == nil {
		v.generation = n
	}
	if ms, err := strconv.ParseInt(m.Header.Get(headerRevoked), 10, 64); err == nil {
		v.stored = time.UnixMilli(ms)
	}
	return v
}

// Copy yields, for a backup, an item without a key, whose sequence is the stream's last one,
// and then the revocations that are effective; nothing if none was ever stored.
func Copy(ctx context.Context, nc *nats.Conn) iter.Seq2[eventlog.CopiedItem, error] {
	return func(yield func(eventlog.CopiedItem, error) bool) {
		last, err := lastSequence(ctx, nc)
		if err != nil {
			yield(eventlog.CopiedItem{}, fmt.Errorf("revocations: stream %s: %w", RevokedStream, err))
			return
		}
		if last == 0 || !yield(eventlog.CopiedItem{Sequence: last}, nil) {
			return
		}
		for m, err := range jetstream.Messages(ctx, nc, RevokedStream, RevokedSubjects) {
			if err != nil {
				yield(eventlog.CopiedItem{}, err)
				return
			}
			v := revocationOf(m)
			if m.Sequence > last || time.Since(v.stored) > holdsFor {
				continue
			}
			item := eventlog.CopiedItem{
				Key: strings.TrimPrefix(m.Subject, revokedSubjects), Sequence: v.generation, Time: v.stored.UTC(),
			}
			if !yield(item, nil) {
				return
			}
		}
	}
}

func lastSequence(ctx context.Context, nc *nats.Conn) (last uint64, err error) {
	js, err := jetstream.NewJetStream(nc)
	if err != nil {
		return 0, err
	}
	err = jetstream.Settle(ctx, nc, func(ctx context.Context) error {
		s, err := js.Stream(ctx, RevokedStream)
		switch {
		case errors.Is(err, natsjs.ErrStreamNotFound):
			return nil
		case err != nil:
			return err
		}
		last = s.CachedInfo().State.LastSeq
		return nil
	})
	return last, err
}

// Fill stores an item of [Copy] in a deployment without revocations. Items must come in
// the order of Copy.
func Fill(ctx context.Context, nc *nats.Conn, replicas int, item eventlog.CopiedItem) error {
	js, err := jetstream.NewJetStream(nc)
	if err != nil {
		return fmt.Errorf("revocations: %w", err)
	}
	if item.Key == "" {
		config := streamConfig(replicas)
		config.FirstSeq = item.Sequence + 1
		if _, err := jetstream.FindOrCreate(ctx, nc, js, config); err != nil {
			return fmt.Errorf("revocations: stream %s: %w", RevokedStream, err)
		}
		return nil
	}
	k, ok := parseKey(item.Key)
	if !ok {
		return fmt.Errorf("revocations: %q is not the hash of a session", item.Key)
	}
	m := nats.NewMsg(k.subject())
	m.Header.Set(headerGeneration, strconv.FormatUint(item.Sequence, 10))
	m.Header.Set(headerRevoked, strconv.FormatInt(item.Time.UnixMilli(), 10))
	err = jetstream.Settle(ctx, nc, func(ctx context.Context) error {
		_, err := js.PublishMsg(ctx, m)
		return err
	})
	if err != nil {
		return fmt.Errorf("revocations: store on %s: %w", m.Subject, err)
	}
	return nil
}
