package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// inlineBytes is the largest payload that a message of the log holds
	// itself.
	inlineBytes = 256 << 10
	// blobPart is the size of a blob's parts: an outside deployment takes
	// messages of 1 MiB by default.
	blobPart = 512 << 10
)

// A blob is a payload that is too large for a message of the log. It lies in
// parts on helix.blob.<p>.<S>.<hash>.<i>, the last part stored last, so that
// it is whole if that one is there. The same payload is kept once in a tree
// and never shared between trees, so that a tree can be erased.
type blobRef struct {
	hash string // SHA-256, hexadecimal
	size int
}

func (b blobRef) String() string { return b.hash + ":" + strconv.Itoa(b.size) }

func (b blobRef) parts() int { return (b.size + blobPart - 1) / blobPart }

func parseBlobRef(s string) (blobRef, error) {
	hash, size, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(size)
	if err != nil || n <= 0 || n > eventlog.MaxPayload || len(hash) != 2*sha256.Size {
		return blobRef{}, fmt.Errorf("%w: blob address", errDamaged)
	}
	return blobRef{hash: hash, size: n}, nil
}

// placeholder is the payload that stands in the log for a blob, so that plain
// NATS subscribers see what they have to fetch.
func (b blobRef) placeholder(typ string) []byte {
	p, _ := json.Marshal(map[string]any{"type": typ, "helixBlob": map[string]any{"sha256": b.hash, "size": b.size}})
	return p
}

// storeBlob stores a payload, and returns where each part is, also with an error. name is
// headerAfter or headerSince.
func (l *Log) storeBlob(ctx context.Context, session string, ref blobRef, payload []byte, name string, value uint64) (at []uint64, err error) {
	prefix := l.blobPrefix(session) + ref.hash + "."
	for i := range ref.parts() {
		m := &nats.Msg{Subject: prefix + strconv.Itoa(i), Data: payload[i*blobPart : min((i+1)*blobPart, len(payload))], Header: nats.Header{
			name: {strconv.FormatUint(value, 10)},
		}}
		n, err := l.store(ctx, m)
		if err != nil {
			return at, fmt.Errorf("jetstream: store blob: %w", err)
		}
		at = append(at, n)
	}
	return at, nil
}

// blobAfter returns the last part that the session has of a blob, and the record
// after which it was stored, if that is known. The error is errNoMessage if there is none.
func (l *Log) blobAfter(ctx context.Context, session string, ref blobRef) (after uint64, err error) {
	m, err := l.lastMessage(ctx, blobStream, l.blobPrefix(session)+ref.hash+"."+strconv.Itoa(ref.parts()-1))
	if err != nil {
		return 0, err
	}
	after, _ = strconv.ParseUint(first(m.header, headerAfter), 10, 64)
	return after, nil
}

func refOf(payload []byte) blobRef {
	sum := sha256.Sum256(payload)
	return blobRef{hash: hex.EncodeToString(sum[:]), size: len(payload)}
}

func (l *Log) blobPrefix(session string) string {
	return blobPrefix(session, l.partitionOf(session))
}

// errNoBlob: a record names a blob that is not there.
var errNoBlob = fmt.Errorf("%w: blob is missing", errDamaged)

// loadBlob returns the payload behind an address, checked against its hash.
func (l *Log) loadBlob(ctx context.Context, session, address string) ([]byte, error) {
	ref, err := parseBlobRef(address)
	if err != nil {
		return nil, err
	}
	prefix := l.blobPrefix(session) + ref.hash + "."
	payload := make([]byte, 0, ref.size)
	for i := range ref.parts() {
		m, err := l.lastMessage(ctx, blobStream, prefix+strconv.Itoa(i))
		if errors.Is(err, errNoMessage) {
			return nil, fmt.Errorf("%w: part %d of %s", errNoBlob, i, ref.hash)
		}
		if err != nil {
			return nil, err
		}
		payload = append(payload, m.data...)
	}
	if sum := sha256.Sum256(payload); hex.EncodeToString(sum[:]) != ref.hash {
		return nil, fmt.Errorf("%w: blob %s has another hash", errDamaged, ref.hash)
	}
	return payload, nil
}
