package jetstream

import (
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// metadataRestoring is the stream metadata key that a log has until its restore
// has ended.
const metadataRestoring = "helix.restoring"

// checkRestored refuses a stream of a restore to all others, and another one's
// stream to a restore.
func checkRestored(got, want natsjs.StreamConfig) error {
	given, wanted := got.Metadata[metadataRestoring], want.Metadata[metadataRestoring]
	switch {
	case given == wanted:
		return nil
	case wanted != "":
		return fmt.Errorf("%w: there is a stream %s", ErrNotEmpty, got.Name)
	}
	return fmt.Errorf("%w (stream %s)", ErrRestoring, got.Name)
}

// Errors of a restore.
var (
	// ErrNotEmpty: a deployment has streams of helixd's.
	ErrNotEmpty = errors.New("jetstream: the deployment is not empty")
	// ErrRestoring: a restore into the deployment has begun and not ended.
	ErrRestoring = errors.New("jetstream: a restore has begun here and not ended; if it has broken off, remove what it left and restore again")
)

// restoreMark is what tells the streams of a restore.
type restoreMark struct {
	id     string // of this restore
	ends   []uint64
	places layout.Places
}

// first is the sequence with which a partition's log goes on.
func (m *restoreMark) first(p int) uint64 { return m.ends[p] + SequencesBehind + 1 }
