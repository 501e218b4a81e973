package jetstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/snapshot"
)

// errReading is the error of Save and Erase after [OpenExisting].
var errReading = errors.New("saved folds: they are open for reading: nothing is stored or erased")

// OpenExisting returns the saved folds of a log as they are, for reading: nothing can be stored
// or erased. The error is natsjs.ErrStreamNotFound if there are none. If a log has grown
// and no node has opened it since, only the first streams exist.
func OpenExisting(ctx context.Context, nc *nats.Conn, places Places) (*Folds, error) {
	f, err := newFolds(nc, places)
	if err != nil {
		return nil, err
	}
	for p := range places.Partitions() {
		s, err := f.js.Stream(ctx, streamName(p))
		if errors.Is(err, natsjs.ErrStreamNotFound) && p > 0 {
			f.streams = append(f.streams, nil)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("saved folds: stream %s: %w", streamName(p), err)
		}
		f.streams = append(f.streams, s)
	}
	return f, nil
}

// Sequences implements snapshot.Folds.
func (f *Folds) Sequences(ctx context.Context, session string, forms ...snapshot.Form) ([]uint64, error) {
	stream, prefix, err := f.place(ctx, session)
	if stream == nil || err != nil {
		return nil, err
	}
	found, err := marks(ctx, stream, prefix, forms...)
	if err != nil {
		return nil, err
	}
	var all []uint64
	for _, m := range found {
		all = append(all, m.seq)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Sessions returns the sessions that have saved folds, sorted by bytes.
func (f *Folds) Sessions(ctx context.Context) ([]string, error) {
	all := map[string]bool{}
	for p, s := range f.streams {
		if s == nil {
			continue
		}
		subjects, err := logjs.Subjects(ctx, f.nc, streamName(p), ">")
		if err != nil {
			return nil, fmt.Errorf("saved folds: %w", err)
		}
		for subject := range subjects {
			if session, _, ok := layout.SessionOf(subject); ok {
				all[session] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}
