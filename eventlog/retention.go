package eventlog

import (
	"context"
	"iter"
	"time"
)

// Archive is a log that also keeps its records in segments, so that retention
// can make it smaller.
type Archive interface {
	Log

	// Purge removes the oldest records from the log, whole prefixes of it
	// only, which segments hold unchanged. Readers notice nothing: all
	// cursors stay valid.
	Purge(ctx context.Context, o PurgeOptions) ([]Purged, error)

	// Droppable yields sessions that may have segments which were written
	// before t and which Trim removes, and so not their only ones. It looks at
	// none of them.
	Droppable(ctx context.Context, t time.Time) iter.Seq2[string, error]

	// SealedBefore returns the session's last record that is in a segment
	// which was written before t, 0 if there is none.
	SealedBefore(ctx context.Context, session string, t time.Time) (uint64, error)

	// Trimmable returns the floor that Trim would leave, and whether it would
	// remove anything.
	Trimmable(ctx context.Context, session string, upTo uint64) (floor uint64, some bool, err error)

	// OldestSegment is when the session's oldest segment was written; zero: it
	// has none.
	OldestSegment(ctx context.Context, session string) (time.Time, error)

	// Size is how much the log and its segments hold, in bytes. Large payloads
	// that are stored as blobs don't count.
	Size(ctx context.Context) (uint64, error)

	// Trim removes for good the segments of a session that hold only records
	// with sequence <= upTo and not in the log, and returns the floor: reads
	// from below it end with a [*TrimmedError].
	Trim(ctx context.Context, session string, upTo uint64) (floor uint64, err error)
}

// MinSealed is how long ago a record must have been sealed before it may be
// purged. An append that finds nothing to compare with in the log asks the
// segments; one that hangs for so long between the two could
// write after records that it has not seen.
const MinSealed = time.Hour

// PurgeOptions say what may go.
type PurgeOptions struct {
	// OlderThan keeps younger records in the log.
	OlderThan time.Duration
	// SealedFor keeps records that were sealed more recently; 0 means
	// MinSealed. Only tests have a reason for less.
	SealedFor time.Duration
}

// Purged says what was purged from a partition's log.
type Purged struct {
	Partition int    `json:"partition"`
	Below     uint64 `json:"below"`   // the log begins here now
	Records   uint64 `json:"records"` // that were removed from the log
}

// maxYield bounds a pause of [Yield].
const maxYield = 50 * time.Millisecond

// Yield pauses maintenance for as long as the step that has just ended took, at most
// 50 ms: appends have priority.
func Yield(ctx context.Context, began time.Time) {
	_ = Sleep(ctx, min(time.Since(began), maxYield)) // the caller checks ctx
}
