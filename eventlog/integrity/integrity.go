// Package integrity checks the records of one session against each other, and names what a
// verification can find in a store.
package integrity

import (
	"fmt"
	"iter"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Finding is something that a verification noticed about a store.
type Finding struct {
	Code Code `json:"code"`
	// Session and Sequence say where, as far as that can be known.
	Session  string `json:"session,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	Detail   string `json:"detail"`
}

// Code is the kind of a finding; codes are stable. Most are problems:
// the store does not hold what was written, or contains what no writer may
// write. See IsNote.
type Code string

// What can be found in a session's records, see [Check].
const (
	FoundOrder   Code = "order"   // a sequence does not rise
	FoundFencing Code = "fencing" // a record of a writer that was superseded
	FoundOrdinal Code = "ordinal" // a writer's ordinals don't rise by one
	FoundPayload Code = "payload" // it can't be decoded, or is not what the envelope says
	FoundMarker  Code = "marker"  // a truncation marker that readers can't follow
	// Notes: records of kinds and types that this version does not know.
	FoundUnknownKind Code = "unknown_kind"
	FoundUnknownType Code = "unknown_type"
)

// What can be found in a store. "Lost" is a record that something else still
// refers to.
const (
	FoundGap            Code = "gap"             // a record is lost between two others
	FoundEndLost        Code = "end_lost"        // the last records are lost
	FoundSessionMissing Code = "session_missing" // nothing is there of a session that was asked for
	FoundUnreadable     Code = "unreadable"      // the store counts more messages than it yields
	FoundLink           Code = "link"            // a record names another predecessor than it has
	FoundMessage        Code = "message_damaged" // a message that can't be taken apart
	FoundSegment        Code = "segment_damaged" // a sealed segment is not what was sealed
	FoundSegmentGap     Code = "segment_gap"     // a sealed segment is lost
	FoundSegmentDiffers Code = "segment_differs" // segment and log hold different records
	FoundFloor          Code = "floor_damaged"   // retention's mark can't be read
	FoundBlobMissing    Code = "blob_missing"    // a large payload, or a part of it, is lost
	FoundBlobDamaged    Code = "blob_damaged"    // a large payload has another hash
	FoundFoldDamaged    Code = "fold_damaged"    // a saved fold can't be read
	FoundFoldDiffers    Code = "fold_differs"    // a saved fold is not the fold of the log
	FoundForeignSubject Code = "foreign_subject" // a message where helixd stores none
	FoundStore          Code = "store_damaged"   // the server says that it lost messages
	FoundBlock          Code = "block_damaged"   // bytes of a file are not what was stored
	FoundBackup         Code = "backup_damaged"  // a backup is cut, or its bytes are not what was written

	// Notes.
	FoundErasing          Code = "erasing"           // an erasure has begun and not ended
	FoundTrimming         Code = "trimming"          // retention has begun and not ended
	FoundBlobUnused       Code = "blob_unused"       // no record names it: an append failed, or was trimmed
	FoundFoldUnverified   Code = "fold_unverified"   // a saved fold that there is nothing to compare with
	FoundSequencesMissing Code = "sequences_missing" // hold nothing: erased sessions', or lost
	FoundEndUnsure        Code = "end_unsure"        // what was stored next to the last record is gone
	FoundTornBlock        Code = "block_torn"        // a file ends in a record that was cut off
	FoundSettings         Code = "settings"          // a stream's settings are not what the daemon takes
)

// IsNote reports whether a finding of this code is no problem: a healthy store
// can have it.
func (c Code) IsNote() bool {
	switch c {
	case FoundUnknownKind, FoundUnknownType, FoundErasing, FoundTrimming, FoundBlobUnused, FoundFoldUnverified,
		FoundSequencesMissing, FoundEndUnsure, FoundTornBlock, FoundSettings:
		return true
	}
	return false
}

// maxUnknown is how many unknown kinds and types of a session are reported.
const maxUnknown = 32

// Check reports to found the faults of the records of one session, which must
// come raw and in the order of the log. If retention has
// removed the session's first records, it is trimmed. Check returns how many
// records there were. It does not stop at the first problem; its error is one
// that records yields.
//
// It keeps the name of every writer, so that an append that was stored twice is
// seen however far apart; else it looks at one record at a time.
func Check(session string, trimmed bool, records iter.Seq2[eventlog.Record, error], found func(Finding)) (n int, err error) {
	c := &recordChecker{session: session, trimmed: trimmed, found: found, writers: map[string]written{}}
	for r, err := range records {
		if err != nil {
			return n, err
		}
		n++
		c.see(r)
	}
	return n, nil
}

// written is what a writer has written so far.
type written struct {
	ordinal uint64
	claimed bool // it has held the tree
}

type recordChecker struct {
	session string
	trimmed bool
	last    uint64
	writers map[string]written
	holder  string          // of the last claim
	unknown map[string]bool // what was reported
	found   func(Finding)
}

func (c *recordChecker) report(r eventlog.Record, code Code, format string, args ...any) {
	c.found(Finding{Code: code, Session: c.session, Sequence: r.Sequence, Detail: fmt.Sprintf(format, args...)})
}

func (c *recordChecker) see(r eventlog.Record) {
	if r.Sequence <= c.last {
		c.report(r, FoundOrder, "the record comes after %d", c.last)
	}
	c.last = max(c.last, r.Sequence)
	c.checkWriter(r)
	c.checkPayload(r)
}

// checkWriter holds what [eventlog.Writer] and [eventlog.AppendOnce] promise: a writer's records
// are there once and in order, and none of them is after a claim that has
// superseded it.
func (c *recordChecker) checkWriter(r eventlog.Record) {
	claims := r.Kind == eventlog.KindFact && r.Type == (*fact.RunClaimed)(nil).Type()
	if r.Writer == "" { // an append that makes no promise
		if claims {
			c.holder = ""
		}
		return
	}
	w, known := c.writers[r.Writer]
	switch {
	case known && r.Ordinal == w.ordinal+1, !known && r.Ordinal == 1:
	case !known && r.Ordinal > 0 && (c.trimmed || r.Origin != (eventlog.Origin{})): // its first records were removed or not imported
	case !known:
		c.report(r, FoundOrdinal, "writer %q begins with its record %d", r.Writer, r.Ordinal)
	case r.Ordinal <= w.ordinal:
		c.report(r, FoundOrdinal, "record %d of writer %q comes after its record %d", r.Ordinal, r.Writer, w.ordinal)
	default:
		c.report(r, FoundOrdinal, "record %d of writer %q follows on its record %d", r.Ordinal, r.Writer, w.ordinal)
	}
	if w.claimed && r.Writer != c.holder {
		c.report(r, FoundFencing, "writer %q was superseded by %q", r.Writer, c.holder)
	} else if claims {
		w.claimed, c.holder = true, r.Writer
	}
	w.ordinal = max(w.ordinal, r.Ordinal)
	c.writers[strings.Clone(r.Writer)] = w // not a part of the message, which can go
}

func (c *recordChecker) checkPayload(r eventlog.Record) {
	var decoded interface{ Type() string }
	var unknown bool
	var err error
	switch r.Kind {
	case eventlog.KindChunk:
		var chunk eventlog.Chunk
		chunk, err = r.Chunk()
		_, unknown = chunk.(*eventlog.Unknown)
		decoded = chunk
	case eventlog.KindFact:
		var f fact.Fact
		f, err = r.Fact()
		_, unknown = f.(*fact.Unknown)
		decoded = f
	default:
		c.reportUnknown(r, FoundUnknownKind, fmt.Sprintf("records of kind %q", r.Kind))
		return
	}
	switch {
	case err != nil:
		c.report(r, FoundPayload, "the %s %s can't be decoded: %v", r.Kind, r.Type, err)
	case decoded.Type() != r.Type:
		c.report(r, FoundPayload, "the %s is a %s, its envelope says %s", r.Kind, decoded.Type(), r.Type)
	case unknown:
		c.reportUnknown(r, FoundUnknownType, fmt.Sprintf("%ss of type %q", r.Kind, r.Type))
	default:
		if err := new(eventlog.Truncations).Add(r); err != nil {
			c.report(r, FoundMarker, "readers of the effective stream stop here: %v", err)
		}
	}
}

// reportUnknown reports the first record of each kind and type.
func (c *recordChecker) reportUnknown(r eventlog.Record, code Code, name string) {
	if c.unknown[name] || len(c.unknown) == maxUnknown {
		return
	}
	if c.unknown == nil {
		c.unknown = map[string]bool{}
	}
	c.unknown[strings.Clone(name)] = true
	c.report(r, code, "this version does not know %s; the record may not be the only one", name)
}
