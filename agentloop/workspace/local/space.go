package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
)

const (
	// private is the folder in a workspace that is not the agent's: files that
	// are being written, and the TMPDIRs of commands.
	private = ".helix"
	// MaxFiles bounds how many files and folders a workspace has.
	MaxFiles = 100_000
	// MaxDepth bounds folders within folders.
	MaxDepth = 200
	// MaxPaths bounds the bytes of all paths together, and of all link targets:
	// code that walks all files may keep them in memory.
	MaxPaths = 16 << 20
)

// space is a session's folder, shared by all who have opened it.
type space struct {
	p       *Provider
	session workspace.Session
	root    *os.Root
	holders int // handles that are not closed; used by callers that have entered the tree

	gone context.Context // ends when it is removed
	end  context.CancelCauseFunc

	// mu is held exclusively by snapshots, and shared by all others.
	mu      sync.RWMutex
	waiting atomic.Int32    // snapshots that wait for mu
	seen    map[string]seen // hashes of files as they were; under mu alone

	usage sync.Mutex
	used  int64 // bytes of all files; -1: to be counted
}

// hold returns the session's workspace, when prepare has seen to its folder. Error:
// that of ctx, and of prepare.
func (p *Provider) hold(ctx context.Context, s workspace.Session, prepare func() error) (*handle, error) {
	tree := encoded(s.Root)
	if err := p.enter(ctx, tree); err != nil {
		return nil, err
	}
	held, others := p.spaces[s], false
	for other := range p.spaces {
		others = others || other.Root == s.Root
	}
	err := p.leave([]string{tree}, func() error {
		if err := prepare(); err != nil {
			return err
		}
		if held == nil {
			if err := p.unlockFiles(s); err != nil {
				return err
			}
			root, err := os.OpenRoot(p.files(s))
			if err != nil {
				return err
			}
			held = &space{p: p, session: s, root: root, used: -1, seen: map[string]seen{}}
			held.gone, held.end = context.WithCancelCause(context.Background())
			held.clean(others)
			p.mu.Lock()
			p.spaces[s] = held
			p.mu.Unlock()
		}
		held.holders++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &handle{space: held}, nil
}

// unlockFiles restores access to a session's folder for its users: a command
// may have locked it.
func (p *Provider) unlockFiles(s workspace.Session) error {
	const mode = 0o700
	info, err := os.Lstat(p.files(s))
	if err != nil || info.Mode()&mode == mode {
		return err
	}
	return os.Chmod(p.files(s), mode)
}

// clean removes what a process that was killed has left, before this one uses
// the workspace: it would count, and could not be deleted. With others of the
// tree, what they may be making stays.
func (s *space) clean(others bool) {
	_ = s.removeAll(private) // what stays counts
	if others {
		return
	}
	tree := s.p.tree(s.session.Root)
	left, _ := fs.Glob(os.DirFS(tree), "*/.new-*")
	for _, name := range left {
		_ = os.RemoveAll(filepath.Join(tree, name))
	}
}

// handle is a caller that has opened it.
type handle struct {
	*space
	once sync.Once
}

func (h *handle) FS() workspace.FS               { return h.space }
func (h *handle) Code() workspace.Code           { return nil }
func (h *handle) Snapshots() workspace.Snapshots { return h.space }

func (h *handle) Shell() workspace.Shell {
	if h.p.shell != nil {
		return nil
	}
	return h.space
}

// Close implements workspace.Workspace.
func (h *handle) Close() error {
	h.once.Do(func() {
		tree := encoded(h.session.Root)
		if h.gone.Err() != nil || h.p.enter(context.Background(), tree) != nil {
			return // the caller that removes it releases it
		}
		if h.holders--; h.holders > 0 || h.p.spaces[h.session] != h.space {
			h.p.mu.Unlock()
			return
		}
		delete(h.p.spaces, h.session)
		_ = h.p.leave([]string{tree}, func() error {
			h.p.recountKept(tree)
			h.remove()
			return nil
		})
	})
	return nil
}

// remove ends commands, and releases the folder when it is not in use.
func (s *space) remove() {
	s.end(workspace.ErrGone)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root.Close()
}

// whileThere ends with ctx, or when the workspace is removed.
func (s *space) whileThere(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.gone, func() { cancel(context.Cause(s.gone)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// use keeps snapshots and removals away until release is called. Error: that of
// ctx, workspace.ErrGone.
func (s *space) use(ctx context.Context, names ...string) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, name := range names {
		if err := workspace.CheckName(name); err != nil {
			return nil, err
		}
		if name == private || strings.HasPrefix(name, private+"/") {
			return nil, fmt.Errorf("%s: %w", name, workspace.ErrOutside)
		}
	}
	try := func() bool { return s.waiting.Load() == 0 && s.mu.TryRLock() } // else users that overlap would starve snapshots
	if err := s.acquire(ctx, try, s.mu.RUnlock); err != nil {
		return nil, err
	}
	if err := s.p.unlockFiles(s.session); err != nil {
		s.mu.RUnlock()
		return nil, s.wrong(".", err)
	}
	return s.mu.RUnlock, nil
}

// useAlone keeps all others away until release is called: new ones wait, those that
// are there are waited for. Error: that of ctx, workspace.ErrGone.
func (s *space) useAlone(ctx context.Context) (release func(), err error) {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	return s.mu.Unlock, s.acquire(ctx, s.mu.TryLock, s.mu.Unlock)
}

// acquire takes mu when try can. Lock would keep a caller waiting, for a long command for
// example, that may not wait any longer. Error: that of ctx, workspace.ErrGone.
func (s *space) acquire(ctx context.Context, try func() bool, release func()) error {
	for !try() {
		if err := eventlog.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if s.gone.Err() != nil {
		release()
		return workspace.ErrGone
	}
	return nil
}

// wrong says what an error of the file system means.
func (s *space) wrong(name string, err error) error {
	if err == nil {
		return nil
	}
	reason := workspace.WithoutPath(err)
	switch {
	case errors.Is(reason, s.p.escapes):
		reason = workspace.ErrOutside
	case isNotFolder(reason):
		reason = workspace.ErrNotFolder
	case isFolder(reason):
		reason = workspace.ErrFolder
	}
	if name == "." { // the workspace itself
		return reason
	}
	return fmt.Errorf("%s: %w", name, reason)
}

// walk calls visit with all that a folder holds, recursively each folder before
// what that holds. It follows no links. visit returns false to end it. Error:
// that of ctx, workspace.ErrQuota.
func (s *space) walk(ctx context.Context, folder string, recursive bool, visit func(name string, info fs.FileInfo) (bool, error)) error {
	count, named := 0, int64(0)
	full := fmt.Errorf("%w: %d files and folders are allowed, %d deep, their paths of %d bytes together", workspace.ErrQuota, MaxFiles, MaxDepth, MaxPaths)
	var walk func(folder string, depth int) (bool, error)
	walk = func(folder string, depth int) (bool, error) {
		names, err := s.names(folder)
		if depth > 0 && s.changed(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if count += len(names); count > MaxFiles || depth > MaxDepth {
			return false, full
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			name = path.Join(folder, name)
			info, err := s.root.Lstat(name)
			if s.changed(err) {
				continue
			}
			more := false
			if err == nil {
				if named += int64(len(name)); info.Mode().Type() == fs.ModeSymlink {
					named += info.Size()
				}
				if named > MaxPaths {
					return false, full
				}
				more, err = visit(name, info)
			}
			if err == nil && more && recursive && info.IsDir() {
				if err = s.unlock(name, info); err == nil {
					more, err = walk(name, depth+1)
				}
			}
			if err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	err := s.wrong(".", s.p.unlockFiles(s.session))
	if err == nil {
		_, err = walk(folder, 0)
	}
	return err
}

// changed reports whether a file that existed a moment ago is gone or was replaced:
// commands run meanwhile.
func (s *space) changed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || isNotFolder(err) || errors.Is(err, s.p.escapes)
}

// unlock lets this process look into a folder that the user of its commands has
// locked: what is in there counts, too.
func (s *space) unlock(name string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	if mode&0o500 == 0o500 || os.Geteuid() == 0 {
		return nil
	}
	if err := s.root.Chmod(name, mode|0o500); !s.changed(err) {
		return err
	}
	return nil
}

// names returns the names of what a folder holds, sorted.
func (s *space) names(folder string) ([]string, error) {
	d, err := s.root.OpenFile(folder, os.O_RDONLY|folderFlags, 0)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(MaxFiles + 2) // what private takes off still is too many
	if closed := d.Close(); err == nil {
		err = closed
	}
	if len(names) == 0 && errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if folder == "." {
		names = slices.DeleteFunc(names, func(n string) bool { return n == private })
	}
	slices.Sort(names)
	return names, nil
}

// size returns how many bytes all files have, those that are private included.
func (s *space) size(ctx context.Context) (n int64, err error) {
	add := func(_ string, info fs.FileInfo) (bool, error) {
		if info.Mode().IsRegular() {
			n += info.Size()
		}
		return true, nil
	}
	for _, folder := range []string{".", private} {
		if err = s.walk(ctx, folder, true, add); folder == private && s.changed(err) {
			err = nil // there is none
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// grow notes that files become larger or smaller. Error: that of ctx,
// workspace.ErrQuota.
func (s *space) grow(ctx context.Context, by int64) error {
	s.usage.Lock()
	defer s.usage.Unlock()
	if s.used < 0 {
		n, err := s.size(ctx)
		if err != nil {
			return err
		}
		s.used = n
	}
	if by > 0 && s.used+by > s.p.opts.MaxBytes {
		return fmt.Errorf("%w: %d bytes are allowed", workspace.ErrQuota, s.p.opts.MaxBytes)
	}
	s.used += by
	return nil
}

// recount has the next write count again.
func (s *space) recount() {
	s.usage.Lock()
	defer s.usage.Unlock()
	s.used = -1
}
