package eventlog

import (
	"context"
	"iter"
	"time"
)

// Copier is a log that can be copied as a whole while it is written to, so that
// a backup is of one moment.
type Copier interface {
	Log

	// Ends returns the last sequence of each partition: a copy of every session
	// up to there is what the log held when Ends looked. An end never
	// splits an append.
	Ends(ctx context.Context) ([]uint64, error)

	// Copy yields a session's records as they are, up to upTo, its partition's
	// end of Ends (0: the partition was empty). Retention has removed its
	// records up to floor. A session that was created later, or has no record
	// left, yields none. Errors: ErrSessionNotFound; otherwise as Read. If an
	// error is yielded, the records before it are not the whole session. If that is
	// ErrSessionNotFound, the session was erased since; the id may be in use again.
	Copy(ctx context.Context, session string, upTo uint64) (floor uint64, records iter.Seq2[Copied, error], err error)

	// PartitionOf returns the partition of a session, from 0.
	PartitionOf(session string) int

	// Placement describes how PartitionOf chooses, nil for a log whose number of
	// partitions has never changed.
	Placement() *Placement
}

// Placement maps sessions to partitions in a log whose number of partitions has grown. A
// copy of the log needs it to use the same partitions.
type Placement struct {
	// Partitions are the numbers of partitions that the log has had, the present
	// one last.
	Partitions []int `json:"partitions"`
	// Settled says for each number but the last which sessions stay where it put
	// them, in a format that only the log knows.
	Settled [][]byte `json:"settled"`
}

// Copied is a record as a log holds it.
type Copied struct {
	Record
	// Unlinked: it does not name the session's record before it. helixd did
	// not write it.
	Unlinked bool
}

// CopiedItem is something that is stored beside the log: a part of a workspace's file, a
// revocation, what a tenant has spent on a day.
type CopiedItem struct {
	Key string `json:"key,omitempty"`
	// Sequence and Time are those of the stream, where they matter.
	Sequence uint64    `json:"sequence,omitempty"`
	Time     time.Time `json:"time,omitzero"`
	Data     []byte    `json:"data,omitempty"`
}
