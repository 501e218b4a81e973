package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

const (
	// placesStream has, in a log that has grown, which sessions stay where an earlier number
	// of partitions put them.
	placesStream   = "HELIX_PLACES"
	placesSubjects = "helix.places."
	// headerPlacesParts is how many messages a table has.
	headerPlacesParts = "Helix-Parts"
	// placesPartBytes is the size of a message: an outside deployment takes 1 MiB by default.
	placesPartBytes = 512 << 10
	placeBytes      = 8
)

// Partition is the partition of a session among that many; it must never
// change. In a log that has grown a session may be in another one, see
// [Log.PartitionOf].
func Partition(session string, partitions int) int {
	h := fnv.New32a()
	h.Write([]byte(session))
	return int(h.Sum32() % uint32(partitions))
}

// Hashed is the number of partitions of a log that has never grown.
type Hashed int

// Partitions returns the number.
func (h Hashed) Partitions() int { return int(h) }

// PartitionOf is [Partition].
func (h Hashed) PartitionOf(session string) int { return Partition(session, int(h)) }

// places tells in which partition a session is. It is the same in every process that has the
// log open, and changes only when the log grows, while no other process has it open.
//
// For each growth there is a table: the hashes of the sessions of which the log had anything
// then, and which the new number would have put elsewhere. They stay in their partitions for
// good, even if they are erased and created again: what is left of an erased session, such
// as a late message, is where the session was. Two ids with the same hash do no harm: one
// of them is then where the earlier number puts it.
type places struct {
	numbers []int // of partitions that the log has had; the last one is the present one
	settled [][]uint64
}

func (p *places) partitions() int { return p.numbers[len(p.numbers)-1] }

func (p *places) of(session string) int {
	if len(p.settled) == 0 {
		return Partition(session, p.partitions())
	}
	h := placeHash(session)
	for i, settled := range p.settled {
		if _, found := slices.BinarySearch(settled, h); found {
			return Partition(session, p.numbers[i])
		}
	}
	return Partition(session, p.partitions())
}

// staying returns the table for a growth to n, of the sessions that are there now.
func (p *places) staying(sessions map[string]bool, n int) (settled []uint64) {
	for session := range sessions {
		h := placeHash(session)
		known := slices.ContainsFunc(p.settled, func(before []uint64) bool {
			_, found := slices.BinarySearch(before, h)
			return found
		})
		if !known && Partition(session, p.partitions()) != Partition(session, n) {
			settled = append(settled, h)
		}
	}
	slices.Sort(settled)
	return slices.Compact(settled)
}

func placeHash(session string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(session))
	return h.Sum64()
}

func packPlaces(settled []uint64) []byte {
	b := make([]byte, 0, len(settled)*placeBytes)
	for _, h := range settled {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

func unpackPlaces(b []byte) (settled []uint64, err error) {
	if len(b)%placeBytes != 0 {
		return nil, fmt.Errorf("%w: table of the sessions that stay in their partitions", errDamaged)
	}
	for entry := range slices.Chunk(b, placeBytes) {
		settled = append(settled, binary.BigEndian.Uint64(entry))
	}
	if !slices.IsSorted(settled) {
		return nil, fmt.Errorf("%w: table of the sessions that stay in their partitions is not sorted", errDamaged)
	}
	return settled, nil
}

// partitionOf returns the partition that has everything of a session.
func (l *Log) partitionOf(session string) int { return l.places.of(session) }

// PartitionOf implements eventlog.Copier.
func (l *Log) PartitionOf(session string) int { return l.partitionOf(session) }

// Partitions returns how many there are.
func (l *Log) Partitions() int { return l.opts.Partitions }

// Placement implements eventlog.Copier.
func (l *Log) Placement() *eventlog.Placement {
	if len(l.places.settled) == 0 {
		return nil
	}
	p := &eventlog.Placement{Partitions: slices.Clone(l.places.numbers)}
	for _, settled := range l.places.settled {
		p.Settled = append(p.Settled, packPlaces(settled))
	}
	return p
}

// placesOf reads a placement with so many partitions.
func placesOf(p *eventlog.Placement, partitions int) (places, error) {
	if p == nil {
		return places{numbers: []int{partitions}}, nil
	}
	all := places{numbers: slices.Clone(p.Partitions)}
	if !growing(p.Partitions) || len(p.Settled) != len(p.Partitions)-1 || all.partitions() != partitions {
		return places{}, fmt.Errorf("%w: placement of %d partitions", errDamaged, partitions)
	}
	for _, b := range p.Settled {
		settled, err := unpackPlaces(b)
		if err != nil {
			return places{}, err
		}
		all.settled = append(all.settled, settled)
	}
	return all, nil
}

// growing reports whether numbers can be those that a log has had.
func growing(numbers []int) bool {
	for i, n := range numbers {
		if n < 1 || n > maxPartitions || i > 0 && n <= numbers[i-1] {
			return false
		}
	}
	return len(numbers) > 0
}

// setNumbers takes over how many partitions there are, and were.
func (l *Log) setNumbers(numbers []int) {
	l.places.numbers = numbers
	l.opts.Partitions = l.places.partitions()
}

// loadPlaces reads the tables.
func (l *Log) loadPlaces(ctx context.Context) error {
	l.places.settled = nil
	for i := range l.places.numbers[1:] {
		settled, err := l.loadSettled(ctx, i)
		if err != nil {
			return err
		}
		l.places.settled = append(l.places.settled, settled)
	}
	return nil
}

func placesSubject(growth, part int) string {
	return fmt.Sprintf("%s%d.%d", placesSubjects, growth, part)
}

func (l *Log) loadSettled(ctx context.Context, growth int) ([]uint64, error) {
	var all []byte
	for i, parts := 0, 1; i < parts; i++ {
		m, err := l.lastReadable(ctx, placesStream, placesSubject(growth, i))
		if err == nil {
			parts, err = strconv.Atoi(first(m.header, headerPlacesParts))
		}
		if errors.Is(err, errNoMessage) || errors.Is(err, strconv.ErrSyntax) {
			err = fmt.Errorf("%w: stream %s lacks message %s; %s", errDamaged, placesStream, placesSubject(growth, i), lostAdvice)
		}
		if err != nil {
			return nil, fmt.Errorf("jetstream: where sessions are: %w", err)
		}
		all = append(all, m.data...)
	}
	return unpackPlaces(all)
}

// storeSettled stores a table, in place of one whose growth has broken off.
func (l *Log) storeSettled(ctx context.Context, growth int, settled []uint64) error {
	s, err := l.findStream(ctx, placesStream)
	if err != nil {
		return err
	}
	err = l.step(ctx, "places", func(ctx context.Context) error {
		return s.Purge(ctx, natsjs.WithPurgeSubject(placesSubjects+strconv.Itoa(growth)+".*"))
	})
	if err != nil {
		return fmt.Errorf("jetstream: stream %s: %w", placesStream, err)
	}
	parts := slices.Collect(slices.Chunk(packPlaces(settled), placesPartBytes))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts {
		m := &nats.Msg{Subject: placesSubject(growth, i), Data: part, Header: nats.Header{headerPlacesParts: {strconv.Itoa(len(parts))}}}
		err := Settle(ctx, l.nc, func(ctx context.Context) error {
			return l.step(ctx, "places", func(ctx context.Context) error {
				_, err := l.js.PublishMsg(ctx, m)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("jetstream: stream %s: %w", placesStream, err)
		}
	}
	return nil
}
