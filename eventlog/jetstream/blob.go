package jetstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// storeBlob stores a payload and reports whether the tree did not have it yet.
func (l *Log) storeBlob(ctx context.Context, session string, payload []byte) (ref blobRef, fresh bool, err error) {
	sum := sha256.Sum256(payload)
	ref = blobRef{hash: hex.EncodeToString(sum[:]), size: len(payload)}
	prefix := l.blobPrefix(session) + ref.hash + "."
	_, err = l.lastMessage(ctx, blobStream, prefix+strconv.Itoa(ref.parts()-1))
	if !errors.Is(err, errNoMessage) {
		return ref, false, err
	}
	for i := range ref.parts() {
		part := payload[i*blobPart : min((i+1)*blobPart, len(payload))]
		if _, err := l.store(ctx, &nats.Msg{Subject: prefix + strconv.Itoa(i), Data: part, Header: nats.Header{}}); err != nil {
			return ref, true, fmt.Errorf("jetstream: store blob: %w", err)
		}
	}
	return ref, true, nil
}

// dropBlobs overwrites blobs of an append that failed, if the session is
// erased: nothing of it may come back. An append that may still create the
// session keeps them.
func (l *Log) dropBlobs(ctx context.Context, session string, expected uint64, blobs []blobRef, why error) {
	if len(blobs) == 0 || expected == 0 && errors.Is(why, eventlog.ErrOutcomeUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderPatience)
	defer cancel()
	if _, err := l.Head(ctx, session); !errors.Is(err, eventlog.ErrSessionNotFound) {
		return
	}
	for _, ref := range blobs {
		// What fails here is left for the next erasure of the session.
		_, _ = l.eraseSubject(ctx, blobStream, l.blobPrefix(session)+ref.hash+".*", math.MaxUint64)
	}
}

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
			return nil, fmt.Errorf("%w: part %d of blob %s is missing", errDamaged, i, ref.hash)
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

func (l *Log) blobPrefix(session string) string {
	return blobPrefix(session, Partition(session, l.opts.Partitions))
}
