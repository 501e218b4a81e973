package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// placesPartBytes is the size of a message: an outside deployment takes 1 MiB by default.
	placesPartBytes = 512 << 10
)

// partitionOf returns the partition that has everything of a session.
func (l *streamSet) partitionOf(session string) int { return l.places.Of(session) }

// PartitionOf implements eventlog.Copier.
func (l *streamSet) PartitionOf(session string) int { return l.partitionOf(session) }

// Partitions returns how many there are.
func (l *streamSet) Partitions() int { return l.opts.Partitions }

// Placement implements eventlog.Copier.
func (l *streamSet) Placement() *eventlog.Placement {
	if len(l.places.Settled) == 0 {
		return nil
	}
	p := &eventlog.Placement{Partitions: slices.Clone(l.places.Numbers)}
	for _, settled := range l.places.Settled {
		p.Settled = append(p.Settled, layout.PackSettled(settled))
	}
	return p
}

// setNumbers takes over how many partitions there are, and were.
func (l *streamSet) setNumbers(numbers []int) {
	l.places.Numbers = numbers
	l.opts.Partitions = l.places.Partitions()
}

// loadPlaces reads the tables.
func (l *streamSet) loadPlaces(ctx context.Context) error {
	l.places.Settled = nil
	for i := range l.places.Numbers[1:] {
		settled, err := l.loadSettled(ctx, i)
		if err != nil {
			return err
		}
		l.places.Settled = append(l.places.Settled, settled)
	}
	return nil
}

func (l *streamSet) loadSettled(ctx context.Context, growth int) ([]uint64, error) {
	var all []byte
	for i, parts := 0, 1; i < parts; i++ {
		m, err := l.lastReadable(ctx, layout.PlacesStream, layout.PlacesSubject(growth, i))
		if err == nil {
			parts, err = strconv.Atoi(wire.First(m.Header, wire.HeaderPlacesParts))
		}
		if errors.Is(err, errNoMessage) || errors.Is(err, strconv.ErrSyntax) {
			err = fmt.Errorf("%w: stream %s lacks message %s; %s", wire.ErrDamaged, layout.PlacesStream, layout.PlacesSubject(growth, i), lostAdvice)
		}
		if err != nil {
			return nil, fmt.Errorf("jetstream: where sessions are: %w", err)
		}
		all = append(all, m.Data...)
	}
	return layout.UnpackSettled(all)
}

// storeSettled stores a table, in place of one whose growth has broken off.
func (l *streamSet) storeSettled(ctx context.Context, growth int, settled []uint64) error {
	s, err := l.findStream(ctx, layout.PlacesStream)
	if err != nil {
		return err
	}
	err = l.step(ctx, "places", func(ctx context.Context) error {
		return s.Purge(ctx, natsjs.WithPurgeSubject(layout.PlacesSubjects+strconv.Itoa(growth)+".*"))
	})
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", layout.PlacesStream, err)
	}
	parts := slices.Collect(slices.Chunk(layout.PackSettled(settled), placesPartBytes))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts {
		m := &nats.Msg{Subject: layout.PlacesSubject(growth, i), Data: part, Header: nats.Header{wire.HeaderPlacesParts: {strconv.Itoa(len(parts))}}}
		err := settle(ctx, l.nc, func(ctx context.Context) error {
			return l.step(ctx, "places", func(ctx context.Context) error {
				_, err := l.js.PublishMsg(ctx, m)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("jetstream: stream %s: %w", layout.PlacesStream, err)
		}
	}
	return nil
}
