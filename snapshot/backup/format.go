package backup

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/snapshot"
)

// Version is the newest version of the format, the one of all stored data; older ones are
// read too. While it is 2, a backup of a log that has never grown is written in version
// unplaced, which programs before 0.1.0 read.
const (
	Version  = version.Format
	unplaced = 1
)

const (
	// maxLine is the longest line, in bytes: the largest saved fold fits, and a
	// record of the largest payload, whatever its bytes are.
	maxLine = 128 << 20
	// window is how far back compression refers, in bytes.
	window = 1 << 20
	// maxWindow is the largest window that a reader accepts.
	maxWindow = 8 << 20
)

// Errors.
var (
	// ErrDamaged: a file is not a backup, is truncated, or has been altered.
	ErrDamaged = errors.New("backup: the file is cut, damaged or no backup")
	// ErrVersion: a file was written by a later version of helixd; also a version.NewerError.
	ErrVersion = errors.New("backup: the file's format is newer than this program")
	// ErrChanged: a session was erased, or retention removed records of it, while it was
	// copied. The output is not a backup; take another one.
	ErrChanged = errors.New("backup: a session was erased or trimmed while it was copied: take the backup again")
)

// Header describes a backup.
type Header struct {
	Version int `json:"version"` // of the format
	// Helixd is the version of the program.
	Helixd    string    `json:"helixd,omitempty"`
	CreatedAt time.Time `json:"createdAt"` // UTC
	// Log describes the log, as it was.
	Log eventlog.Info `json:"log"`
	// Ends are the last sequences of its partitions at the moment of the backup.
	Ends []uint64 `json:"ends"`
	// Placement is the partition of each session, if the log has grown.
	Placement *eventlog.Placement `json:"placement,omitempty"`
}

// Summary counts the content of a backup.
type Summary struct {
	Sessions int   `json:"sessions"`
	Records  int   `json:"records"`
	Bytes    int64 `json:"bytes"` // of the payloads
	// Items counts what was stored beside the log, see Beside.
	Items int `json:"items,omitempty"`
}

// line is one line; it has one of the members.
type line struct {
	Backup  *Header          `json:"backup,omitempty"`
	Session *sessionLine     `json:"session,omitempty"`
	Fold    *foldLine        `json:"fold,omitempty"`
	Record  *eventlog.Record `json:"record,omitempty"`
	// Unlinked is the record's flag, see eventlog.Copied.
	Unlinked   bool            `json:"unlinked,omitempty"`
	SessionEnd *sessionEndLine `json:"sessionEnd,omitempty"`
	End        *Summary        `json:"end,omitempty"`
	// Item and ItemsEnd come after End.
	Item     *itemLine     `json:"item,omitempty"`
	ItemsEnd *itemsEndLine `json:"itemsEnd,omitempty"`
}

// sessionLine begins a session.
type sessionLine struct {
	ID string `json:"id"`
	// Floor is the sequence up to which retention has removed records; 0: it has removed
	// none.
	Floor uint64 `json:"floor,omitempty"`
}

// sessionEndLine ends a session.
type sessionEndLine struct {
	Records int `json:"records"`
}

// foldLine is a saved fold.
type foldLine struct {
	Sequence uint64          `json:"sequence"`
	Version  int             `json:"version"`
	Digest   string          `json:"digest"`
	State    json.RawMessage `json:"state"`
}

func lineOf(s snapshot.Saved) *foldLine {
	return &foldLine{Sequence: s.Sequence, Version: s.Version, Digest: s.Digest, State: s.State}
}

func (f *foldLine) saved() snapshot.Saved {
	return snapshot.Saved{Sequence: f.Sequence, Version: f.Version, Digest: f.Digest, State: f.State}
}
