package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// Folds keeps saved folds. It is a cache: everything in it can be lost, and
// is then folded again.
type Folds interface {
	// Nearest returns the session's saved fold with the largest sequence
	// <= n, or nil.
	Nearest(ctx context.Context, session string, n uint64) (*Saved, error)
	// Save keeps a fold. Folds that are too large for the store are not
	// kept, which is no error.
	Save(ctx context.Context, session string, s Saved) error
	// Erase removes all saved folds of a session, every byte of them.
	Erase(ctx context.Context, session string) error
}

// Saved is the state of a session at a sequence.
type Saved struct {
	Sequence uint64
	// Version is the version of the fold that made it.
	Version int
	// Digest is of the record at Sequence. A log that has lost its end, in a
	// batched fsync mode, gives its sequences again; then it differs.
	Digest string
	// State is the JSON of a projector.Tree.
	State []byte
}

func digest(r eventlog.Record) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d ", r.Writer, r.Ordinal)
	h.Write(r.Payload)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
