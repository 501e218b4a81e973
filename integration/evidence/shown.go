package evidence

import (
	"hash/maphash"
	"maps"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// Shown is a chunk that a reader was shown. A reader's rise.
type Shown struct{ Sequence, Hash uint64 }

var seed = maphash.MakeSeed()

// Hash stands for a chunk's JSON, within this process.
func Hash(chunk []byte) uint64 { return maphash.Bytes(seed, chunk) }

// Complete checks what a reader was shown: each surviving chunk once and in order,
// and nothing that is not in the log. What it saw before it was truncated is in
// the log, too.
func Complete(shown []Shown, records []eventlog.Record, dead eventlog.Truncations) error {
	seen := map[uint64]uint64{}
	for _, s := range shown {
		seen[s.Sequence] = s.Hash
	}
	end := uint64(0)
	if len(shown) > 0 {
		end = shown[len(shown)-1].Sequence
	}
	for _, rec := range records {
		if rec.Kind != eventlog.KindChunk {
			continue
		}
		hash, has := seen[rec.Sequence]
		delete(seen, rec.Sequence)
		switch {
		case !has && rec.Sequence <= end && !dead.Covers(rec):
			return Wrong([]uint64{rec.Sequence}, "a reader has not got %s", rec.Payload)
		case !has && !dead.Covers(rec):
			return Wrong([]uint64{rec.Sequence, end}, "a reader has not got the end, %s", rec.Payload)
		case has && hash != Hash(rec.Payload):
			return Wrong([]uint64{rec.Sequence}, "a reader has got something else than %s", rec.Payload)
		}
	}
	if len(seen) > 0 {
		return Wrong(slices.Sorted(maps.Keys(seen)), "a reader was shown what is not in the log")
	}
	return nil
}
