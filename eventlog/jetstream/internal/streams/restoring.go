package streams

import (
	"errors"
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"
)

// MetadataRestoring is the stream metadata key that marks a log until its restore is
// finished.
const MetadataRestoring = "helix.restoring"

// checkRestored refuses a restore's stream to all others, and another restore's stream to
// a restore.
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
	// ErrNotEmpty: the deployment already has streams of helixd.
	ErrNotEmpty = errors.New("jetstream: the deployment is not empty")
	// ErrRestoring: a restore into the deployment has begun and is not finished.
	ErrRestoring = errors.New("jetstream: a restore has begun here and not ended; if it has broken off, remove what it left and restore again")
)
