package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentName is the workspace's folder as an isolated command sees it, below the
// first of homes that this machine has: the same on every machine, and in every
// fork.
const agentName = "/agent"

var (
	homes     = []string{"/home", "/mnt", "/srv", "/opt"}
	tempNames = []string{"/tmp", "/var/tmp", "/dev/shm"}
)

// isolate makes of this process's own namespaces what a command shall see: the
// machine read-only, the workspace, and a place for temporary files.
func isolate(j job) (home, temp string, err error) {
	files, err := openPath(j.Files)
	if err != nil {
		return "", "", err
	}
	defer unix.Close(files)
	temps, err := openPath(j.Temp)
	if err != nil {
		return "", "", err
	}
	defer unix.Close(temps)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", "", fmt.Errorf("mounts of its own: %w", err)
	}
	const nothing = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("proc", "/proc", "proc", nothing|unix.MS_NOEXEC, ""); err != nil {
		return "", "", fmt.Errorf("mount /proc: %w", err)
	}
	if err := setMounts("/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
		return "", "", fmt.Errorf("read-only: %w", err)
	}
	bind := func(fd int, target string) error {
		// The descriptor's own mount is meant, also where another covers it now.
		if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(fd), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
		return setMounts(target, 0, nothingAttr, unix.MOUNT_ATTR_RDONLY)
	}
	empty := func(target string) error {
		if err := unix.Mount("helixd", target, "tmpfs", nothing, "size=64k,nr_inodes=64,mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
		return nil
	}
	for _, name := range homes {
		if _, err := os.Lstat(name); err == nil {
			home = name + agentName
			break
		}
	}
	parent := strings.TrimSuffix(home, agentName)
	if home == "" {
		return "", "", errors.New("there is no folder for the workspace to be mounted in")
	}
	if err := errors.Join(empty(parent), os.Mkdir(home, 0o755), bind(files, home), setMounts(parent, 0, unix.MOUNT_ATTR_RDONLY, 0)); err != nil {
		return "", "", err
	}
	for _, name := range j.Hide {
		err := empty(name)
		if errors.Is(err, fs.ErrNotExist) { // something else hides it
			continue
		}
		if err == nil {
			err = setMounts(name, 0, unix.MOUNT_ATTR_RDONLY, 0)
		}
		if err != nil {
			return "", "", err
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

const nothingAttr = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

func setMounts(name string, flags uint, set, clr uint64) error {
	return unix.MountSetattr(unix.AT_FDCWD, name, flags, &unix.MountAttr{Attr_set: set, Attr_clr: clr})
}

// openPath opens a folder to be mounted elsewhere.
func openPath(name string) (int, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return fd, nil
}
