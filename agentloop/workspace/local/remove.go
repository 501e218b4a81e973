package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
)

const (
	// maxOpen is how many folders within each other a removal opens: a command
	// makes more of them than a process may have files open.
	maxOpen = 32
	// maxNames is how many names of a folder a removal reads at a time.
	maxNames = 1024
)

// removeAll removes a name with everything in it, also what forbids that to its
// owner. One that is not there is no error.
func removeAll(ctx context.Context, in *os.Root, name string) error {
	return remover{ctx: ctx}.remove(in, name, ".")
}

// removeAll removes what commands have left, up to the first error.
func (s *space) removeAll(name string) error {
	return removeAll(context.Background(), s.root, name)
}

// remover removes a folder, however deep it is: what is deeper than maxOpen is
// moved up before.
type remover struct {
	ctx   context.Context
	top   *os.Root // the folder; nil: it is not open yet
	depth int
}

// remove removes a name in a folder, which is where in the top.
func (r remover) remove(in *os.Root, name, where string) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	err := in.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if info, lerr := in.Lstat(name); lerr != nil || !info.IsDir() {
		return err
	}
	if err := in.Chmod(name, 0o700); err != nil {
		return err
	}
	if r.depth == maxOpen {
		return r.top.Rename(path.Join(where, name), rand.Text())
	}
	folder, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	if r.top == nil {
		r.top = folder
	} else {
		r.depth, where = r.depth+1, path.Join(where, name)
	}
	if err := r.empty(folder, where); err != nil {
		return err
	}
	return in.Remove(name)
}

// empty removes all that a folder holds.
func (r remover) empty(folder *os.Root, where string) error {
	for {
		d, err := folder.Open(".")
		if err != nil {
			return err
		}
		names, err := d.Readdirnames(maxNames)
		if closed := d.Close(); err == nil {
			err = closed
		}
		if len(names) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		for _, name := range names { // what was read goes also beside an error
			if err := r.remove(folder, name, where); err != nil {
				return err
			}
		}
	}
}
