package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// devices are what a command finds in /dev beside links, terminals and shm.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// deviceLinks are as every program expects them.
var deviceLinks = map[string]string{
	"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
}

// replaceDevices covers /dev with one that has only these devices.
func replaceDevices(open func(at int, name string, flags int) (int, error)) error {
	found := map[string]int{}
	for _, name := range devices { // before they are covered
		fd, err := open(unix.AT_FDCWD, "/dev/"+name, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		found[name] = fd
	}
	if err := empty("/dev", unix.MS_NOEXEC); err != nil {
		return err
	}
	for name, fd := range found {
		target := filepath.Join("/dev", name)
		if err := os.WriteFile(target, nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount(pathOf(fd), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
	}
	for name, to := range deviceLinks {
		if err := os.Symlink(to, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	// Its own terminals: the machine's belong to people who are logged in.
	const terminals = "newinstance,ptmxmode=0666,mode=620"
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, terminals); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	return setMounts("/dev", 0, unix.MOUNT_ATTR_RDONLY, 0)
}

// openLoopback has the network of this process's own namespace reach itself.
func openLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}
