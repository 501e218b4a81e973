package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// placesPartBytes is the size of a message: an outside deployment takes 1 MiB by
	// default.
	placesPartBytes = 512 << 10
)

// PartitionOf returns the partition of a session.
func (l *Set) PartitionOf(session string) int { return l.places.Load().Of(session) }

// Partitions returns the number of partitions.
func (l *Set) Partitions() int { return l.places.Load().Partitions() }

// Placement implements eventlog.Copier.
func (l *Set) Placement() *eventlog.Placement {
	places := l.places.Load()
	if len(places.Settled) == 0 {
		return nil
	}
	p := &eventlog.Placement{Partitions: slices.Clone(places.Numbers)}
	for _, settled := range places.Settled {
		p.Settled = append(p.Settled, layout.PackSettled(settled))
	}
	return p
}

// setNumbers sets the present and earlier numbers of partitions.
func (l *Set) setNumbers(numbers []int) { l.places.Store(&layout.Places{Numbers: numbers}) }

// loadPlaces reads the tables.
func (l *Set) loadPlaces(ctx context.Context) error {
	all := layout.Places{Numbers: l.places.Load().Numbers}
	for i := range all.Numbers[1:] {
		settled, err := l.loadSettled(ctx, i)
		if err != nil {
			return err
		}
		all.Settled = append(all.Settled, settled)
	}
	l.places.Store(&all)
	return nil
}

func (l *Set) loadSettled(ctx context.Context, growth int) ([]uint64, error) {
	var all []byte
	for i, parts := 0, 1; i < parts; i++ {
		m, err := l.LastReadable(ctx, layout.PlacesStream, layout.PlacesSubject(growth, i))
		if err == nil {
			parts, err = strconv.Atoi(wire.First(m.Header, wire.HeaderPlacesParts))
		}
		if errors.Is(err, link.ErrNoMessage) || errors.Is(err, strconv.ErrSyntax) {
			err = fmt.Errorf("%w: stream %s lacks message %s; %s", wire.ErrDamaged, layout.PlacesStream, layout.PlacesSubject(growth, i), link.LostAdvice)
		}
		if err != nil {
			return nil, fmt.Errorf("jetstream: where sessions are: %w", err)
		}
		all = append(all, m.Data...)
	}
	return layout.UnpackSettled(all)
}

// storeSettled stores a table. It fails if another process has stored one since its parts
// were read as was.
func (l *Set) storeSettled(ctx context.Context, growth int, settled []uint64, was partsSeen) error {
	parts := slices.Collect(slices.Chunk(layout.PackSettled(settled), placesPartBytes))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts {
		header := nats.Header{wire.HeaderPlacesParts: {strconv.Itoa(len(parts))}}
		subject := layout.PlacesSubject(growth, i)
		_, err := l.publishPlaces(ctx, subject, header, part, natsjs.WithExpectLastSequencePerSubject(was[subject]))
		if err != nil {
			return fmt.Errorf("jetstream: stream %s: %w", layout.PlacesStream, err)
		}
	}
	return nil
}

// partsSeen are the last sequences of a table's parts.
type partsSeen map[string]uint64

// partsOf returns the parts of a table that an interrupted growth has left.
func (l *Set) partsOf(ctx context.Context, growth int) (partsSeen, error) {
	seen := partsSeen{}
	for i := 0; ; i++ {
		subject := layout.PlacesSubject(growth, i)
		m, err := l.LastMessage(ctx, layout.PlacesStream, subject)
		if errors.Is(err, link.ErrNoMessage) {
			return seen, nil
		}
		if err != nil {
			return nil, fmt.Errorf("jetstream: where sessions are: %w", err)
		}
		seen[subject] = m.Sequence
	}
}
