package jetstream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

// OpenExisting returns the saved folds beside a log of that many partitions as
// they are. The error is natsjs.ErrStreamNotFound if there are none.
func OpenExisting(ctx context.Context, nc *nats.Conn, partitions int) (*Folds, error) {
	f, err := newFolds(nc)
	if err != nil {
		return nil, err
	}
	for p := range max(partitions, 1) {
		s, err := f.js.Stream(ctx, streamName(p))
		if err != nil {
			return nil, fmt.Errorf("saved folds: stream %s: %w", streamName(p), err)
		}
		f.streams = append(f.streams, s)
	}
	return f, nil
}

// Sequences implements snapshot.Lister.
func (f *Folds) Sequences(ctx context.Context, session string, forms ...snapshot.Form) ([]uint64, error) {
	stream, prefix := f.place(session)
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

// Sessions returns the sessions that there are saved folds of, sorted by
// bytes.
func (f *Folds) Sessions(ctx context.Context) ([]string, error) {
	all := map[string]bool{}
	for _, s := range f.streams {
		info, err := s.Info(ctx, natsjs.WithSubjectFilter(">"))
		if err != nil {
			return nil, fmt.Errorf("saved folds: %w", err)
		}
		for subject := range info.State.Subjects {
			if session, _, ok := logjs.SessionOf(subject); ok {
				all[session] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}
