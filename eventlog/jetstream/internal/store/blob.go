package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// InlineBytes is the largest payload in bytes that is in the message of its record.
	InlineBytes = 256 << 10
)

// StoreBlob stores a payload, and returns the sequence of each part, also with an error.
// name is wire.HeaderAfter or wire.HeaderSince.
func (l *Store) StoreBlob(ctx context.Context, session string, ref wire.BlobRef, payload []byte, name string, value uint64) (at []uint64, err error) {
	prefix := l.BlobPrefix(session) + ref.Hash + "."
	for i := range ref.Parts() {
		m := &nats.Msg{Subject: prefix + strconv.Itoa(i), Data: payload[i*wire.BlobPart : min((i+1)*wire.BlobPart, len(payload))], Header: nats.Header{
			name: {strconv.FormatUint(value, 10)},
		}}
		n, err := l.StoreMessage(ctx, m)
		if err != nil {
			return at, fmt.Errorf("jetstream: store blob: %w", err)
		}
		at = append(at, n)
	}
	return at, nil
}

// BlobAfter returns the record after which the last part of a session's blob was stored,
// 0 if that is unknown. The error is ErrNoMessage if there is no blob.
func (l *Store) BlobAfter(ctx context.Context, session string, ref wire.BlobRef) (after uint64, err error) {
	m, err := l.LastMessage(ctx, layout.BlobStream, l.BlobPrefix(session)+ref.Hash+"."+strconv.Itoa(ref.Parts()-1))
	if err != nil {
		return 0, err
	}
	after, _ = strconv.ParseUint(wire.First(m.Header, wire.HeaderAfter), 10, 64)
	return after, nil
}

func (l *Store) BlobPrefix(session string) string {
	return layout.BlobPrefix(session, l.PartitionOf(session))
}

// errNoBlob: a record names a blob that does not exist.
var errNoBlob = fmt.Errorf("%w: blob is missing", wire.ErrDamaged)

// LoadBlob returns the payload at an address, checked against its hash. Errors:
// ErrDamaged, with errNoBlob if a part is missing.
func (l *Store) LoadBlob(ctx context.Context, session, address string) ([]byte, error) {
	ref, err := wire.ParseBlobRef(address)
	if err != nil {
		return nil, err
	}
	prefix := l.BlobPrefix(session) + ref.Hash + "."
	payload := make([]byte, 0, ref.Size)
	for i := range ref.Parts() {
		m, err := l.AnyGet(ctx, layout.BlobStream, map[string]any{"last_by_subj": prefix + strconv.Itoa(i)}) // the hash proves it
		if errors.Is(err, link.ErrNoMessage) {
			return nil, fmt.Errorf("%w: part %d of %s", errNoBlob, i, ref.Hash)
		}
		if err != nil {
			return nil, err
		}
		payload = append(payload, m.Data...)
	}
	if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != ref.Hash {
		return nil, fmt.Errorf("%w: blob %s has another hash", wire.ErrDamaged, ref.Hash)
	}
	return payload, nil
}
