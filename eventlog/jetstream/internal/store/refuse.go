package store

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// Info implements eventlog.Log.
func (l *Store) Info() eventlog.Info {
	info := eventlog.Info{
		Backend: "jetstream", Durability: l.Durability(), Partitions: l.Partitions(),
		MaxRecordBytes: eventlog.MaxPayload, GatherFrom: l.Opts.GatherFrom(),
	}
	info.Refuses, info.RefusesErasure = l.Refuses(false), l.Refuses(true)
	return info
}

// Refuses returns why nothing should be stored now, empty if it may; frees: the operation
// frees space.
func (l *Store) Refuses(frees bool) string {
	if err := l.ServerProblem(); err != nil {
		return err.Error()
	}
	if l.Opts.Refuses == nil {
		return ""
	}
	return l.Opts.Refuses(frees)
}

// freeing marks the context of an operation that frees space, though it stores a little.
type freeing struct{}

// Frees returns ctx for an operation that frees space, or ErrRefused: even that needs
// some space.
func (l *Store) Frees(ctx context.Context) (context.Context, error) {
	if why := l.Refuses(true); why != "" {
		return ctx, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	return context.WithValue(ctx, freeing{}, true), nil
}
