package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Provider makes the workspaces of one kind. Its methods may be
// called at the same time, also for the same session by two nodes of which one
// has not noticed yet that it lost the session.
type Provider interface {
	// ID is the provider's kind, as configurations name it: [a-z0-9-]{1,64}.
	ID() string
	// Capabilities are what its workspaces can do.
	Capabilities() []fact.WorkspaceCapability
	// Open makes the session's workspace, or finds the one that was made for
	// it before: a crash between Open and the record of it must not leave two.
	// The ref is a JSON object by which Resolve finds it on any node that can
	// reach it.
	Open(ctx context.Context, s Session) (Workspace, json.RawMessage, error)
	// Resolve finds a workspace again. Errors: ErrGone, ErrElsewhere.
	Resolve(ctx context.Context, s Session, ref json.RawMessage) (Workspace, error)
	// Adopt copies a snapshot of another session's, which may be erased
	// afterwards, to be the session's own. It is asked with a fork, and may be
	// asked again for the same. Errors: ErrGone, if there is no such snapshot;
	// ErrElsewhere.
	Adopt(ctx context.Context, s Session, snapshot json.RawMessage) (json.RawMessage, error)
	// Remove removes everything that there is of a session tree: workspaces
	// and snapshots, of the root and of its sub-agents, so that nothing can be
	// read from a disk any more. It returns how many snapshots there were.
	Remove(ctx context.Context, root string) (snapshots int, err error)
	// Roots yields the roots of the trees of which there is anything, so that
	// what is left of erased ones is found.
	Roots(ctx context.Context) ([]string, error)
}

// Collector is a Provider that keeps replaced and deleted files until they are collected.
type Collector interface {
	// Collect removes those of a session tree that is in use, for about a minute at most:
	// the next call continues. Each node calls it for the trees that Roots lists, one after
	// the other: for about five minutes, then, ten minutes later, from the next tree on.
	Collect(ctx context.Context, root string) error
}

// Session is whose workspace it is.
type Session struct {
	Root string // of the session tree
	ID   string // the root's, or a sub-agent's
}

// Workspace is one session's. What the provider can't do is nil.
type Workspace interface {
	FS() FS
	Shell() Shell
	Code() Code
	Snapshots() Snapshots
	// Close releases what the process holds. The files stay.
	Close() error
}

// FS are files. Names are those that CheckName lets pass; "." is the workspace.
// Anything that would lead out of it is ErrOutside, also through symbolic
// links. What is not there is fs.ErrNotExist; a folder where a file has to
// be is ErrFolder, and the reverse ErrNotFolder. Empty folders may vanish.
type FS interface {
	ReadFile(ctx context.Context, name string) ([]byte, error)
	// WriteFile replaces a file whole, with the folders that it needs; it is
	// as durable as the provider can make it when this returns. Of two at the
	// same time one wins. Errors: ErrTooLarge, ErrQuota.
	WriteFile(ctx context.Context, name string, data []byte) error
	// Remove removes a file, or a folder with everything in it.
	Remove(ctx context.Context, name string) error
	// Rename moves a file, replacing one, or a folder to where nothing is, with
	// the folders that this needs. Errors: fs.ErrExist.
	Rename(ctx context.Context, from, to string) error
	// List returns what a folder holds, sorted by name; recursively, what all
	// of its folders hold, each folder before what it holds, with names
	// relative to it. Symbolic links are not followed. At most MaxEntries.
	List(ctx context.Context, name string, recursive bool) (entries []Entry, truncated bool, err error)
	Stat(ctx context.Context, name string) (Entry, error)
}

// Entry is a file or a folder.
type Entry struct {
	Name     string      `json:"name"`
	Dir      bool        `json:"dir,omitempty"`
	Size     int64       `json:"size"`
	Mode     fs.FileMode `json:"-"`
	Modified time.Time   `json:"modified"`
}

// Shell runs commands in the workspace.
type Shell interface {
	// Run runs a command line by the shell and waits for it. A command that
	// fails is a result and no error. Limits that it hits end it, with all
	// processes that it began.
	Run(ctx context.Context, c Command) (Outcome, error)
}

// Command is a command line.
type Command struct {
	Line    string
	Dir     string        // in the workspace; empty: "."
	Stdin   string        // what it reads
	Timeout time.Duration // 0: the provider's; at most the provider's
	// HostNetwork gives it the machine's network; otherwise it reaches only
	// processes that it started itself.
	HostNetwork bool
}

// Outcome is what has become of a command.
type Outcome struct {
	ExitCode  int    `json:"exitCode"` // -1: it was ended
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated,omitempty"` // there was more output
	// Stopped is which limit has ended it: timeout, output, processes, memory, quota;
	// empty: none has.
	Stopped string `json:"stopped,omitempty"`
}

// Code runs source code in an interpreter.
type Code interface {
	Languages() []string
	RunCode(ctx context.Context, language, source string, timeout time.Duration) (Outcome, error)
}

// Snapshots keep what the files are.
type Snapshots interface {
	// Take keeps the files as they are now. The same files may give the same
	// snapshot. It is a JSON object of at most MaxSnapshotRef bytes. Error:
	// ErrQuota, if the session tree's snapshots keep too much already.
	Take(ctx context.Context) (json.RawMessage, error)
	// Restore makes the files those of a snapshot of the session's own; nil:
	// there are none. Error: ErrGone, if there is no such snapshot, or it is
	// another session tree's.
	Restore(ctx context.Context, snapshot json.RawMessage) error
}

// Limits of all workspaces.
const (
	MaxFile        = 8 << 20   // bytes of a file that is read or written as a whole
	MaxEntries     = 1000      // of a listing
	MaxPath        = 1024      // bytes of a name
	MaxElement     = 255       // bytes of each of its parts
	MaxOutput      = 256 << 10 // bytes of a command's output, each of the two
	MaxSnapshotRef = 64 << 10  // bytes
)

// Errors of workspaces.
var (
	ErrOutside   = errors.New("the path leads out of the workspace")
	ErrGone      = errors.New("the workspace is gone")
	ErrElsewhere = errors.New("the workspace is on another node")
	ErrTooLarge  = errors.New("the file is too large")
	ErrQuota     = errors.New("the workspace is full")
	ErrName      = errors.New("the name is not valid")
	ErrFolder    = errors.New("it is a folder")
	ErrNotFolder = errors.New("it is not a folder")
	// ErrPending: it is removed, and bytes of it may still be in internal files of
	// the servers, where no provider sees them. The error's text says where.
	ErrPending = errors.New("the workspace is removed, but not yet from all files")
)
