package streams

import (
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

// MetadataRestoring is the stream metadata key that a log has until its restore
// has ended.
const MetadataRestoring = "helix.restoring"

// checkRestored refuses a stream of a restore to all others, and another one's
// stream to a restore.
func checkRestored(got, want natsjs.StreamConfig) error {
	given, wanted := got.Metadata[MetadataRestoring], want.Metadata[MetadataRestoring]
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
