package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/helixd/helixd/agentloop/workspace"
)

// ReadFile implements workspace.FS.
func (s *space) ReadFile(ctx context.Context, name string) ([]byte, error) {
	release, err := s.use(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	f, size, err := s.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size <= workspace.MaxFile {
		data, err := io.ReadAll(io.LimitReader(f, workspace.MaxFile+1)) // it may grow
		if err != nil || len(data) <= workspace.MaxFile {
			return data, s.wrong(name, err)
		}
	}
	return nil, fmt.Errorf("%s: %w: %d bytes are allowed", name, workspace.ErrTooLarge, workspace.MaxFile)
}

// openFile opens a regular file that is the agent's.
func (s *space) openFile(name string) (f *os.File, size int64, err error) {
	if f, err = s.root.OpenFile(name, os.O_RDONLY|openFlags, 0); err != nil {
		return nil, 0, s.wrong(name, err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = workspace.ErrFolder
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%w: it is not a regular file", workspace.ErrName)
	case !s.p.user.owns(info):
		err = fmt.Errorf("%w: the file has another owner", workspace.ErrOutside)
	default:
		return f, info.Size(), nil
	}
	f.Close()
	return nil, 0, s.wrong(name, err)
}

// WriteFile implements workspace.FS. A symbolic link is replaced itself.
func (s *space) WriteFile(ctx context.Context, name string, data []byte) error {
	if len(data) > workspace.MaxFile {
		return fmt.Errorf("%s: %w: %d bytes, %d are allowed", name, workspace.ErrTooLarge, len(data), workspace.MaxFile)
	}
	release, err := s.use(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	mode, size := fs.FileMode(0o644), int64(0)
	info, err := s.root.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: %w", name, workspace.ErrFolder)
	case err == nil && info.Mode().IsRegular():
		mode, size = info.Mode().Perm(), info.Size()
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s.wrong(name, err)
	}
	if err := s.grow(ctx, int64(len(data))-size); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	err = s.replace(name, mode, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		s.recount()
	}
	return s.wrong(name, err)
}

// replace writes a file beside, and puts it in its place when it is durable.
func (s *space) replace(name string, mode fs.FileMode, write func(*os.File) error) error {
	made, err := s.makeFolders(path.Dir(name))
	if err != nil {
		return err
	}
	if err := s.makePrivate(); err != nil {
		return err
	}
	fresh := private + "/" + rand.Text()
	f, err := s.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = errors.Join(s.p.user.own(f), f.Chmod(mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(fresh, name)
	}
	if err != nil {
		_ = s.root.Remove(fresh) // err says more
		return err
	}
	return s.sync(path.Dir(name), made)
}

// makePrivate makes the private folder, also where a command has put something
// else.
func (s *space) makePrivate() error {
	if info, err := s.root.Lstat(private); err == nil {
		if info.IsDir() {
			return nil
		}
		if err := s.root.Remove(private); err != nil {
			return err
		}
	}
	_, err := s.makeFolders(private)
	return err
}

// makeFolders makes a folder and those above it, and reports whether any was
// missing, or not the user's yet.
func (s *space) makeFolders(folder string) (made bool, err error) {
	if folder == "." {
		return false, nil
	}
	parts := strings.Split(folder, "/")
	if len(parts) > MaxDepth {
		return false, fmt.Errorf("%w: folders are allowed %d deep", workspace.ErrQuota, MaxDepth)
	}
	for i := range parts {
		name := strings.Join(parts[:i+1], "/")
		err := s.root.Mkdir(name, 0o755)
		there := errors.Is(err, fs.ErrExist)
		if there && s.p.user.isSelf() {
			continue
		}
		if err != nil && !there {
			return made, err
		}
		// What is opened is a folder, so it can't be a link to another's file.
		d, err := s.root.OpenFile(name, os.O_RDONLY|folderFlags, 0)
		if err != nil {
			return made, err
		}
		if !there || s.p.user.lacks(d) { // a killed process may have made it, and no more
			made, err = true, s.p.user.own(d)
		}
		if err := errors.Join(err, d.Close()); err != nil {
			return made, err
		}
	}
	return made, nil
}

// sync makes names in a folder durable, and if it was made, in those above.
func (s *space) sync(folder string, above bool) error {
	for ; ; folder = path.Dir(folder) {
		d, err := s.root.OpenFile(folder, os.O_RDONLY|folderFlags, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
		if !above || folder == "." {
			return nil
		}
	}
}

// Remove implements workspace.FS.
func (s *space) Remove(ctx context.Context, name string) error {
	release, err := s.use(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if name == "." {
		return fmt.Errorf("%w: the workspace itself stays", workspace.ErrName)
	}
	if _, err := s.root.Lstat(name); err != nil {
		return s.wrong(name, err)
	}
	defer s.recount()
	ctx, cancel := s.whileThere(ctx)
	defer cancel()
	if err := removeAll(ctx, s.root, name); err != nil {
		return s.wrong(name, err)
	}
	return s.wrong(name, s.sync(path.Dir(name), false))
}

// Rename implements workspace.FS.
func (s *space) Rename(ctx context.Context, from, to string) error {
	release, err := s.use(ctx, from, to)
	if err != nil {
		return err
	}
	defer release()
	if from == "." || to == "." {
		return fmt.Errorf("%w: the workspace itself stays", workspace.ErrName)
	}
	old, err := s.root.Lstat(from)
	if err != nil || from == to {
		return s.wrong(from, err)
	}
	if strings.HasPrefix(to, from+"/") {
		return fmt.Errorf("%s: %w: it is in what is moved", to, workspace.ErrName)
	}
	if there, err := s.root.Lstat(to); err == nil && (there.IsDir() || old.IsDir()) {
		return fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	made, err := s.makeFolders(path.Dir(to))
	if err != nil {
		return s.wrong(to, err)
	}
	if err := s.root.Rename(from, to); err != nil {
		return s.wrong(to, err)
	}
	s.recount() // it may have replaced something
	return errors.Join(s.wrong(to, s.sync(path.Dir(to), made)), s.wrong(from, s.sync(path.Dir(from), false)))
}

// Stat implements workspace.FS.
func (s *space) Stat(ctx context.Context, name string) (workspace.Entry, error) {
	release, err := s.use(ctx, name)
	if err != nil {
		return workspace.Entry{}, err
	}
	defer release()
	info, err := s.root.Stat(name)
	if err != nil {
		return workspace.Entry{}, s.wrong(name, err)
	}
	return entryOf(name, info), nil
}

func entryOf(name string, info fs.FileInfo) workspace.Entry {
	e := workspace.Entry{Name: name, Dir: info.IsDir(), Mode: info.Mode(), Modified: info.ModTime().UTC()}
	if !e.Dir {
		e.Size = info.Size()
	}
	return e
}

// List implements workspace.FS.
func (s *space) List(ctx context.Context, name string, recursive bool) (entries []workspace.Entry, truncated bool, err error) {
	release, err := s.use(ctx, name)
	if err != nil {
		return nil, false, err
	}
	defer release()
	err = s.walk(ctx, name, recursive, func(found string, info fs.FileInfo) (bool, error) {
		if len(entries) == workspace.MaxEntries {
			truncated = true
			return false, nil
		}
		relative := found
		if name != "." {
			relative = strings.TrimPrefix(found, name+"/")
		}
		entries = append(entries, entryOf(relative, info))
		return true, nil
	})
	return entries, truncated, s.wrong(name, err)
}
