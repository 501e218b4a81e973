package layout

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// Partition returns the partition of a session among that many; the result must never
// change. In a log that has grown a session may be in another one, see [Places].
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

// Places has the partition of each session. It is the same in every process that has the
// log open. When the log grows, it is replaced.
//
// For each growth there is a table: the hashes of the sessions that the log had at that
// moment and that the new number would have put elsewhere. They stay in their partitions
// for good, even if they are erased and created again, since remains of an erased
// session, such as a late message, are where the session was. If two ids have the same
// hash, one of them is placed by the earlier number, which does no harm.
type Places struct {
	Numbers []int // numbers of partitions that the log has had, the present one last
	Settled [][]uint64
}

func (p *Places) Partitions() int { return p.Numbers[len(p.Numbers)-1] }

func (p *Places) Of(session string) int {
	n, _ := p.numberOf(session)
	return Partition(session, n)
}

// numberOf returns the number of partitions by which a session is placed, and whether the
// session is in a table.
func (p *Places) numberOf(session string) (n int, settled bool) {
	if len(p.Settled) > 0 {
		h := placeHash(session)
		for i, table := range p.Settled {
			if _, found := slices.BinarySearch(table, h); found {
				return p.Numbers[i], true
			}
		}
	}
	return p.Partitions(), false
}

// Grown returns the places of a log that has grown to n partitions, with the table of the
// sessions that stay.
func (p *Places) Grown(n int, settled []uint64) *Places {
	return &Places{Numbers: append(slices.Clone(p.Numbers), n), Settled: append(slices.Clone(p.Settled), settled)}
}

// Moves reports whether a session that does not exist yet will be elsewhere with n
// partitions.
func (p *Places) Moves(session string, n int) bool {
	now, settled := p.numberOf(session)
	return !settled && Partition(session, now) != Partition(session, n)
}

// Staying returns the table for a growth to n, of the sessions that exist now.
func (p *Places) Staying(sessions map[string]bool, n int) (settled []uint64) {
	for session := range sessions {
		if p.Moves(session, n) {
			settled = append(settled, placeHash(session))
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

const placeBytes = 8

func PackSettled(settled []uint64) []byte {
	b := make([]byte, 0, len(settled)*placeBytes)
	for _, h := range settled {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

func UnpackSettled(b []byte) (settled []uint64, err error) {
	if len(b)%placeBytes != 0 {
		return nil, fmt.Errorf("jetstream: %w: table of the sessions that stay in their partitions", eventlog.ErrDamaged)
	}
	for entry := range slices.Chunk(b, placeBytes) {
		settled = append(settled, binary.BigEndian.Uint64(entry))
	}
	if !slices.IsSorted(settled) {
		return nil, fmt.Errorf("jetstream: %w: table of the sessions that stay in their partitions is not sorted", eventlog.ErrDamaged)
	}
	return settled, nil
}

// PlacesOf decodes a placement with that many partitions.
func PlacesOf(p *eventlog.Placement, partitions int) (Places, error) {
	if p == nil {
		return Places{Numbers: []int{partitions}}, nil
	}
	all := Places{Numbers: slices.Clone(p.Partitions)}
	if !Growing(p.Partitions) || len(p.Settled) != len(p.Partitions)-1 || all.Partitions() != partitions {
		return Places{}, fmt.Errorf("jetstream: %w: placement of %d partitions", eventlog.ErrDamaged, partitions)
	}
	for _, b := range p.Settled {
		settled, err := UnpackSettled(b)
		if err != nil {
			return Places{}, err
		}
		all.Settled = append(all.Settled, settled)
	}
	return all, nil
}

// Growing reports whether numbers can be those of one log: each from 1 to MaxPartitions,
// and rising.
func Growing(numbers []int) bool {
	for i, n := range numbers {
		if n < 1 || n > MaxPartitions || i > 0 && n <= numbers[i-1] {
			return false
		}
	}
	return len(numbers) > 0
}

// MaxPartitions bounds Options.Partitions.
const MaxPartitions = 64
