//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/helixd/helixd/integration/deployment"
)

// disks are the file systems that were made for the last node: a small one,
// which can be filled, or one of which the power can be cut. That needs root.
type disks struct {
	mounts []string
	image  string // whose power can be cut; empty: none
}

// errNothing: this machine can't do what was asked for. That is no failure.
var errNothing = errors.New("there is nothing left to break")

// Sizes of the file systems, in bytes.
const (
	smallDisk = 192 << 20
	imageDisk = 512 << 20
)

// prepare makes what the faults need. Those for which this machine has not
// got it are left out; that is said.
func (d *disks) prepare(t *trial) error {
	wanted := func(k string) bool { return slices.Contains(t.faults, k) }
	drop := func(k string, err error) error {
		deployment.Say("left out: %s: this machine has no such file system: %v", k, err)
		t.faults = slices.DeleteFunc(slices.Clone(t.faults), func(f string) bool { return f == k })
		if len(t.faults) == 0 {
			return errNothing
		}
		return nil
	}
	last := t.members()[t.nodes-1]
	if wanted(kindPower) {
		image := filepath.Join(t.folder, "disk")
		if err := d.format(image, last.data); err != nil {
			return drop(kindPower, err)
		}
		d.image = image
		return nil
	}
	if wanted(kindDisk) {
		if err := d.mount(last.data, "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", smallDisk), "tmpfs"); err != nil {
			return drop(kindDisk, err)
		}
	}
	return nil
}

func (d *disks) mount(at string, args ...string) error {
	if err := run("mount", append(args, at)...); err != nil {
		return err
	}
	d.mounts = append(d.mounts, at)
	return nil
}

func (d *disks) format(image, at string) error {
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(imageDisk), f.Close()); err != nil {
		return err
	}
	if err := run("mkfs.ext4", "-q", "-F", image); err != nil {
		return err
	}
	return d.mount(at, "-o", "loop", image)
}

func (d *disks) remove() {
	for _, at := range d.mounts {
		_ = run("umount", "-l", at)
	}
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// fill takes all the room that is left on a disk. empty gives it back.
func fill(folder string) error {
	f, err := os.Create(filepath.Join(folder, ballast))
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		err = nil
	}
	return nil
}

func empty(folder string) error { return os.Remove(filepath.Join(folder, ballast)) }

const ballast = "ballast"

// goDown is the ioctl that shuts ext4 and XFS down at once, and its flag to
// leave the journal as it is on the disk: what a power loss leaves,
// whatever pages are dirty. It was made to test file systems in this way.
const (
	goDown    = 0x8004587d
	noLogging = 2
)

// inMemory returns the folder that a node has on a file system in memory, which a power loss
// takes too; empty: none.
func inMemory(data string) (string, error) {
	name, err := os.ReadFile(filepath.Join(data, "jetstream", "helixd.staging"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(name), err
}

// cutPower has the image's file system lose all that was not written to it,
// and mounts what is left. Nobody may have a file of it open when it is
// called, but for a process that never runs again.
func cutPower(at string) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := uint32(noLogging)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), goDown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("shut the file system down: %w", errno)
	}
	return nil
}

// powerWithin is how long another mount namespace may keep the file system that
// was shut down: what was mounted when it was made is mounted there, too, and
// who mounts the image meanwhile gets that file system again.
const powerWithin = 2 * time.Minute

// powerUp mounts what a power cut has left.
func powerUp(image, at string) error {
	for began := time.Now(); ; time.Sleep(time.Second) {
		if err := run("umount", at); err != nil {
			return err
		}
		if err := run("mount", "-o", "loop", image, at); err != nil {
			return err
		}
		probe := filepath.Join(at, "probe")
		err := errors.Join(os.WriteFile(probe, nil, 0o600), os.Remove(probe))
		if !errors.Is(err, syscall.EIO) || time.Since(began) > powerWithin {
			return err
		}
	}
}
