package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentName is the workspace's folder as an isolated command sees it, below the
// first of homes that this machine has: the same on every machine, and in every
// fork.
const agentName = "/agent"

var (
	// homes are where people and services have what is theirs, sockets too: a
	// command sees nothing of it.
	homes     = []string{"/home", "/mnt", "/srv", "/media", "/root", "/run"}
	tempNames = []string{"/tmp", "/var/tmp", "/dev/shm"}
)

// isolate makes of this process's own namespaces what a command may see: the
// machine read-only and without what is hidden, the workspace, and a place for
// temporary files.
func isolate(j job) (home, temp string, err error) {
	var opened []int
	defer func() {
		for _, fd := range opened {
			unix.Close(fd)
		}
	}()
	open := func(at int, name string, flags int) (int, error) {
		fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		if err != nil {
			return -1, fmt.Errorf("%s: %w", name, err)
		}
		opened = append(opened, fd)
		return fd, nil
	}
	files, err := open(unix.AT_FDCWD, j.Files, unix.O_DIRECTORY)
	if err != nil {
		return "", "", err
	}
	temps := files
	for name := range strings.SplitSeq(j.Temp, "/") { // another command may exchange each for a link
		if temps, err = open(temps, name, unix.O_DIRECTORY|unix.O_NOFOLLOW); err != nil {
			return "", "", err
		}
	}
	// All are opened before one of them can cover another.
	var hidden []int
	for _, name := range j.Hide {
		fd, err := open(unix.AT_FDCWD, name, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // nor does a command find it
		}
		if err != nil {
			return "", "", err
		}
		hidden = append(hidden, fd)
	}
	resolver, servers := resolvers()

	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", "", fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", nothing|unix.MS_NOEXEC, ""); err != nil {
		return "", "", fmt.Errorf("mount /proc: %w", err)
	}
	// In namespaces of users within this one a command would be root again. If this can't
	// be set, they only reach more of the kernel.
	_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	if err := setMounts("/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
		return "", "", fmt.Errorf("read-only: %w", err)
	}
	for _, fd := range hidden {
		if err := hide(fd); err != nil {
			return "", "", err
		}
	}
	var covered []string
	for _, name := range homes {
		if _, err := os.Stat(name); err != nil {
			continue
		}
		if err := empty(name, 0); err != nil {
			return "", "", err
		}
		covered = append(covered, name)
	}
	if len(covered) == 0 {
		return "", "", errors.New("there is no folder for the workspace to be mounted in")
	}
	home = covered[0] + agentName
	if err := errors.Join(os.Mkdir(home, 0o755), bind(files, home)); err != nil {
		return "", "", err
	}
	if _, err := os.Lstat(resolver); resolver != "" && errors.Is(err, fs.ErrNotExist) { // covered
		if err := errors.Join(os.MkdirAll(filepath.Dir(resolver), 0o755), os.WriteFile(resolver, servers, 0o644)); err != nil {
			return "", "", err
		}
	}
	for _, name := range covered {
		if err := setMounts(name, 0, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return "", "", err
		}
	}
	if err := replaceDevices(open); err != nil {
		return "", "", err
	}
	if !j.HostNetwork {
		if err := openLoopback(); err != nil {
			return "", "", fmt.Errorf("loopback: %w", err)
		}
	}
	for _, name := range tempNames {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		if err := bind(temps, name); err != nil {
			return "", "", err
		}
		if temp == "" {
			temp = name
		}
	}
	if temp == "" {
		return "", "", errors.New("there is no folder for temporary files")
	}
	return home, temp, nil
}

const (
	nothing     = unix.MS_NOSUID | unix.MS_NODEV
	nothingAttr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
)

// resolvers returns the file with the name servers, and its content.
func resolvers() (name string, text []byte) {
	name, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return "", nil
	}
	if text, err = os.ReadFile(name); err != nil {
		return "", nil
	}
	return name, text
}

// pathOf returns a path of an open file, even if a mount covers
// it now.
func pathOf(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// hide covers a folder or a file.
func hide(fd int) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT == unix.S_IFDIR {
		return empty(pathOf(fd), unix.MS_RDONLY)
	}
	if err := unix.Mount("/dev/null", pathOf(fd), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("hide a file: %w", err)
	}
	return nil
}

// empty covers a folder with an empty one.
func empty(target string, flags uintptr) error {
	if err := unix.Mount("helixd", target, "tmpfs", nothing|flags, "size=64k,nr_inodes=64,mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// bind mounts a folder so that it can be written.
func bind(fd int, target string) error {
	if err := unix.Mount(pathOf(fd), target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return setMounts(target, 0, nothingAttr, unix.MOUNT_ATTR_RDONLY)
}

func setMounts(name string, flags uint, set, clr uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, name, flags, &unix.MountAttr{Attr_set: set, Attr_clr: clr})
}
