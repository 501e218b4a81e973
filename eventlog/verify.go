package eventlog

import (
	"fmt"
	"iter"
	"strings"

	"github.com/helixd/helixd/eventlog/fact"
)

// Finding is something that a verification noticed about a store.
type Finding struct {
	Code FindingCode `json:"code"`
	// Session and Sequence say where, as far as that can be known.
	Session  string `json:"session,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	Detail   string `json:"detail"`
}

// FindingCode is the kind of a finding; codes are stable. Most are problems:
// the store does not hold what was written, or contains what no writer may
// write. See IsNote.
type FindingCode string

// What can be found in a session's records, see [Check].
const (
	FoundOrder   FindingCode = "order"   // a sequence does not rise
	FoundFencing FindingCode = "fencing" // a record of a writer that was superseded
	FoundOrdinal FindingCode = "ordinal" // a writer's ordinals don't rise by one
	FoundPayload FindingCode = "payload" // it can't be decoded, or is not what the envelope says
	FoundMarker  FindingCode = "marker"  // a truncation marker that readers can't follow
	// Notes: records of kinds and types that this version does not know.
	FoundUnknownKind FindingCode = "unknown_kind"
	FoundUnknownType FindingCode = "unknown_type"
)

// What can be found in a store. "Lost" is a record that something else still
// refers to.
const (
	FoundGap            FindingCode = "gap"             // a record is lost between two others
	FoundEndLost        FindingCode = "end_lost"        // the last records are lost
	FoundSessionMissing FindingCode = "session_missing" // nothing is there of a session that was asked for
	FoundUnreadable     FindingCode = "unreadable"      // the store counts more messages than it yields
	FoundLink           FindingCode = "link"            // a record names another predecessor than it has
	FoundMessage        FindingCode = "message_damaged" // a message that can't be taken apart
	FoundSegment        FindingCode = "segment_damaged" // a sealed segment is not what was sealed
	FoundSegmentGap     FindingCode = "segment_gap"     // a sealed segment is lost
	FoundSegmentDiffers FindingCode = "segment_differs" // segment and log hold different records
	FoundFloor          FindingCode = "floor_damaged"   // retention's mark can't be read
	FoundBlobMissing    FindingCode = "blob_missing"    // a large payload, or a part of it, is lost
	FoundBlobDamaged    FindingCode = "blob_damaged"    // a large payload has another hash
	FoundFoldDamaged    FindingCode = "fold_damaged"    // a saved fold can't be read
	FoundFoldDiffers    FindingCode = "fold_differs"    // a saved fold is not the fold of the log
	FoundForeignSubject FindingCode = "foreign_subject" // a message where helixd stores none
	FoundStore          FindingCode = "store_damaged"   // the server says that it lost messages
	FoundBlock          FindingCode = "block_damaged"   // bytes of a file are not what was stored
	FoundBackup         FindingCode = "backup_damaged"  // a backup is cut, or its bytes are not what was written

	// Notes.
	FoundErasing          FindingCode = "erasing"           // an erasure has begun and not ended
	FoundTrimming         FindingCode = "trimming"          // retention has begun and not ended
	FoundBlobUnused       FindingCode = "blob_unused"       // no record names it: an append failed, or was trimmed
	FoundFoldUnverified   FindingCode = "fold_unverified"   // a saved fold that there is nothing to compare with
	FoundSequencesMissing FindingCode = "sequences_missing" // hold nothing: erased sessions', or lost
	FoundEndUnsure        FindingCode = "end_unsure"        // what was stored next to the last record is gone
	FoundTornBlock        FindingCode = "block_torn"        // a file ends in a record that was cut off
	FoundSettings         FindingCode = "settings"          // a stream's settings are not what the daemon takes
)

// IsNote reports whether a finding of this code is no problem: a healthy store
// can have it.
func (c FindingCode) IsNote() bool {
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
func Check(session string, trimmed bool, records iter.Seq2[Record, error], found func(Finding)) (n int, err error) {
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

func (c *recordChecker) tell(r Record, code FindingCode, format string, args ...any) {
	c.found(Finding{Code: code, Session: c.session, Sequence: r.Sequence, Detail: fmt.Sprintf(format, args...)})
}

func (c *recordChecker) see(r Record) {
	if r.Sequence <= c.last {
		c.tell(r, FoundOrder, "the record comes after %d", c.last)
	}
	c.last = max(c.last, r.Sequence)
	c.checkWriter(r)
	c.checkPayload(r)
}

// checkWriter holds what [Writer] and [AppendOnce] promise: a writer's records
// are there once and in order, and none of them is after a claim that has
// superseded it.
func (c *recordChecker) checkWriter(r Record) {
	claims := r.Kind == KindFact && r.Type == (*fact.RunClaimed)(nil).Type()
	if r.Writer == "" { // an append that makes no promise
		if claims {
			c.holder = ""
		}
		return
	}
	w, known := c.writers[r.Writer]
	switch {
	case known && r.Ordinal == w.ordinal+1, !known && r.Ordinal == 1:
	case !known && r.Ordinal > 0 && (c.trimmed || r.Origin != Origin{}): // its first records were removed or not imported
	case !known:
		c.tell(r, FoundOrdinal, "writer %q begins with its record %d", r.Writer, r.Ordinal)
	case r.Ordinal <= w.ordinal:
		c.tell(r, FoundOrdinal, "record %d of writer %q comes after its record %d", r.Ordinal, r.Writer, w.ordinal)
	default:
		c.tell(r, FoundOrdinal, "record %d of writer %q follows on its record %d", r.Ordinal, r.Writer, w.ordinal)
	}
	if w.claimed && r.Writer != c.holder {
		c.tell(r, FoundFencing, "writer %q was superseded by %q", r.Writer, c.holder)
	} else if claims {
		w.claimed, c.holder = true, r.Writer
	}
	w.ordinal = max(w.ordinal, r.Ordinal)
	c.writers[strings.Clone(r.Writer)] = w // not a part of the message, which can go
}

func (c *recordChecker) checkPayload(r Record) {
	var decoded interface{ Type() string }
	var unknown bool
	var err error
	switch r.Kind {
	case KindChunk:
		var chunk Chunk
		chunk, err = r.Chunk()
		_, unknown = chunk.(*Unknown)
		decoded = chunk
	case KindFact:
		var f fact.Fact
		f, err = r.Fact()
		_, unknown = f.(*fact.Unknown)
		decoded = f
	default:
		c.tellUnknown(r, FoundUnknownKind, fmt.Sprintf("records of kind %q", r.Kind))
		return
	}
	switch {
	case err != nil:
		c.tell(r, FoundPayload, "the %s %s can't be decoded: %v", r.Kind, r.Type, err)
	case decoded.Type() != r.Type:
		c.tell(r, FoundPayload, "the %s is a %s, its envelope says %s", r.Kind, decoded.Type(), r.Type)
	case unknown:
		c.tellUnknown(r, FoundUnknownType, fmt.Sprintf("%ss of type %q", r.Kind, r.Type))
	default:
		if err := new(Truncations).Add(r); err != nil {
			c.tell(r, FoundMarker, "readers of the effective stream stop here: %v", err)
		}
	}
}

// tellUnknown reports the first record of each kind and type.
func (c *recordChecker) tellUnknown(r Record, code FindingCode, name string) {
	if c.unknown[name] || len(c.unknown) == maxUnknown {
		return
	}
	if c.unknown == nil {
		c.unknown = map[string]bool{}
	}
	c.unknown[strings.Clone(name)] = true
	c.tell(r, code, "this version does not know %s; the record may not be the only one", name)
}
