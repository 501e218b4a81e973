//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	osuser "os/user"
	"strconv"
	"strings"
	"syscall"
)

// nobody is the user as whom commands run if this process is root.
const nobody = 65534

const (
	// openFlags keep an open of a pipe from waiting for its other end.
	openFlags   = syscall.O_NONBLOCK
	folderFlags = syscall.O_DIRECTORY | syscall.O_NONBLOCK
)

// user is whose the files are, and as whom commands run.
type user struct{ uid, gid int }

// self is this process's own user.
func self() user { return user{os.Geteuid(), os.Getegid()} }

// userOf finds the user of Options.RunAs.
func userOf(name string) (user, error) {
	own := self()
	if name == "" {
		// Root of a namespace that has no other users is no more than they are.
		if own.uid == 0 && mapped("uid_map", nobody) && mapped("gid_map", nobody) {
			return user{nobody, nobody}, nil
		}
		return own, nil
	}
	found, err := osuser.Lookup(name)
	if uid, nerr := strconv.ParseUint(name, 10, 31); nerr == nil {
		// A number needs no entry.
		found, err = &osuser.User{Uid: name, Gid: strconv.FormatUint(uid, 10)}, nil
		if known, kerr := osuser.LookupId(name); kerr == nil {
			found = known
		}
	}
	if err != nil {
		return user{}, err
	}
	u := user{}
	if u.uid, err = strconv.Atoi(found.Uid); err != nil {
		return user{}, err
	}
	if u.gid, err = strconv.Atoi(found.Gid); err != nil {
		return user{}, err
	}
	switch {
	case u.uid == 0 || u.gid == 0:
		return user{}, errors.New("commands must not run as root, nor in its group")
	case own.uid != 0 && u.uid != own.uid:
		return user{}, fmt.Errorf("only root can run commands as %s", name)
	case own.uid != 0:
		return own, nil
	case !mapped("uid_map", u.uid) || !mapped("gid_map", u.gid):
		return user{}, fmt.Errorf("this namespace of users has no %s", name)
	}
	return u, nil
}

// mapped reports whether this process's namespace of users has an id.
func mapped(file string, id int) bool {
	text, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return true // there are no namespaces
	}
	for line := range strings.Lines(string(text)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && id >= first && id-first < count {
			return true
		}
	}
	return false
}

// own makes the user the owner of a file or a folder that this process made.
func (u user) own(f *os.File) error {
	if u.isSelf() {
		return nil
	}
	return f.Chown(u.uid, u.gid)
}

// isSelf reports whether the user is this process's own.
func (u user) isSelf() bool { return os.Geteuid() == u.uid }

// lacks reports whether a folder is this process's, and not the user's yet.
func (u user) lacks(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && !u.isSelf()
}

// owns reports whether a file is the user's, or this process's.
func (u user) owns(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(s.Uid) == u.uid || int(s.Uid) == os.Geteuid() && s.Nlink == 1)
}

func isNotFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }
func isFolder(err error) bool    { return errors.Is(err, syscall.EISDIR) }

// ownLink makes the user the owner of a symbolic link.
func (u user) ownLink(root *os.Root, name string) error {
	if u.isSelf() {
		return nil
	}
	return root.Lchown(name, u.uid, u.gid)
}
