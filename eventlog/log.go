package eventlog

import (
	"context"
	"iter"
)

// Log is a durable, ordered log with one order for each session tree. Its
// implementations share one contract suite, package logtest.
//
// A sequence n as a cursor means "records with sequence <= n are known"; 0 is
// before everything. Sequences rise over the whole session, have gaps and are
// never used again.
type Log interface {
	// Append writes entries, all or none, if the session's last sequence is
	// expected (0: the session is new). It returns the sequence of the last
	// one; those of the others precede it without gaps. When it returns nil
	// the records are as durable as Info says. After that the caller may change
	// entries, but not their payloads.
	//
	// Errors: *ConflictError, nothing was written; ErrOutcomeUnknown, they
	// may be in the log now or later; ErrRefused; ErrTooLarge;
	// *ValidationError for the session id.
	Append(ctx context.Context, session string, expected uint64, entries []Entry) (last uint64, err error)

	// Hold keeps appends to a session back for a caller whose comparison has
	// failed: until release is called, at most a second, appends wait on every
	// node, but for those with the context held. It is for fairness only: an
	// append that no hold has reached may still be first. [Update] uses it.
	Hold(ctx context.Context, session string) (held context.Context, release func())

	// Read yields the records with from < sequence <= to, up to the head if
	// to is 0. It proves that it is complete, with the leader's head, or it
	// ends with an error. Errors: ErrSessionNotFound, ErrIncomplete,
	// ErrDamaged, *CursorAheadError if from or to is beyond the head,
	// *TrimmedError if from is below what retention has left.
	Read(ctx context.Context, session string, from, to uint64) iter.Seq2[Record, error]

	// Follow yields the records with sequence > from, waiting for new ones
	// until ctx ends, which is its last error. A gap is repaired or is an
	// error, never skipped. [WithoutWriter] leaves out one writer's. Errors: as Read.
	Follow(ctx context.Context, session string, from uint64) iter.Seq2[Record, error]

	// Head returns the session's last sequence, or ErrSessionNotFound.
	Head(ctx context.Context, session string) (uint64, error)

	// Sessions yields the ids of all sessions, sorted by bytes.
	Sessions(ctx context.Context) iter.Seq2[string, error]

	// Erase removes every byte of a session, for good. As soon as it has
	// begun, the session is not found and its writers can't write. It can be
	// called again until nothing is pending. [WithHead] leaves a later session of the id
	// alone. Errors: ErrSessionNotFound, ErrRefused, ErrDamaged if the server can't read the session: it is
	// erased when it can be read again.
	Erase(ctx context.Context, session string) (Erasure, error)

	// Info describes the log.
	Info() Info

	// Close ends all followers and refuses further use; it is idempotent.
	Close() error
}

// Info describes a log.
type Info struct {
	Backend    string     `json:"backend"`
	Durability Durability `json:"durability"`
	Partitions int        `json:"partitions"`
	// MaxRecordBytes is the largest payload that Append takes, in bytes.
	MaxRecordBytes int `json:"maxRecordBytes"`
	// GatherFrom is the number of records from which one append of all is faster
	// than an append of each.
	GatherFrom int `json:"-"`
	// Refuses says why appends are refused now; empty: they are not.
	Refuses string `json:"refuses,omitempty"`
	// RefusesErasure says why even erasure and retention are refused now; empty: they are not.
	RefusesErasure string `json:"-"`
}

// Erasure says how far the erasure of a session has come.
type Erasure struct {
	// Pending: some of its bytes may still be on a disk. The nodes continue without
	// further requests; erase again to see how far they are. If it is set beside an
	// error, the erasure has begun and is final: the session is not found any more.
	// If it is not set beside an error, the outcome is unknown.
	Pending bool `json:"pending"`
	// Records is how many records were removed by this call.
	Records int `json:"records"`
	// WaitsFor says what a pending erasure waits for. It needs no action.
	WaitsFor string `json:"waitsFor,omitempty"`
	// Left names what a pending erasure can't remove, and what an operator must do.
	Left string `json:"left,omitempty"`
}

// Limits of records and appends.
const (
	// MaxPayload is the largest payload of a record, in bytes.
	MaxPayload = 16 << 20
	// MaxDepth is how deeply the JSON of a record may be nested. Go's decoder
	// ends at 10,000, and a state holds what records hold, some levels deeper.
	MaxDepth = 500
	// MaxAppendRecords is how many records one append takes: JetStream stores no
	// larger atomic batch.
	MaxAppendRecords = 1000
)

// Durability says what an acknowledged append survives: "fsync" a power
// loss, "interval=D" a power loss but for the last D, "replicated×N" the loss
// of fewer than half of N servers, "memory" nothing, "unknown" at least a
// killed client. See Survives.
type Durability string

// Durability modes without a parameter.
const (
	DurabilityFsync   Durability = "fsync"
	DurabilityMemory  Durability = "memory"
	DurabilityUnknown Durability = "unknown"
)
