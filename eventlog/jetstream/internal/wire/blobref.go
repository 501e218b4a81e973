package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// BlobPart is the size in bytes of a blob's parts: an outside deployment takes messages
// of 1 MiB by default.
const BlobPart = 512 << 10

// BlobRef is the address of a blob: a payload that is too large for a message of the log.
// It is stored in parts on helix.blob.<p>.<S>.<hash>.<i>, the last part last, so that the
// blob is complete if that one exists. The same payload is stored once in a tree and
// never shared between trees, so that a tree can be erased.
type BlobRef struct {
	Hash string // SHA-256, hexadecimal
	Size int
}

func (b BlobRef) String() string { return b.Hash + ":" + strconv.Itoa(b.Size) }

func (b BlobRef) Parts() int { return (b.Size + BlobPart - 1) / BlobPart }

func ParseBlobRef(s string) (BlobRef, error) {
	hash, size, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(size)
	if err != nil || n <= 0 || n > eventlog.MaxPayload || len(hash) != 2*sha256.Size {
		return BlobRef{}, fmt.Errorf("%w: blob address", ErrDamaged)
	}
	return BlobRef{Hash: hash, Size: n}, nil
}

// Placeholder is the payload in the log in place of a blob, which names what plain NATS
// subscribers have to fetch.
func (b BlobRef) Placeholder(typ string) []byte {
	p, _ := json.Marshal(map[string]any{"type": typ, "helixBlob": map[string]any{"sha256": b.Hash, "size": b.Size}})
	return p
}

func RefOf(payload []byte) BlobRef {
	sum := sha256.Sum256(payload)
	return BlobRef{Hash: hex.EncodeToString(sum[:]), Size: len(payload)}
}
