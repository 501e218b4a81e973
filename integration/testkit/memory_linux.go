package testkit

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// memoryFiles is where Linux has files in memory, memoryRoom how much room there must be.
const (
	memoryFiles = "/dev/shm"
	memoryRoom  = 4 << 30

	tmpfs  = 0x01021994 // the type of its file system
	noExec = 0x8        // of a file system's flags
)

// Tests are those of a package.
type Tests struct{ m *testing.M }

// InMemory has the temporary folders of a package's tests in memory, if the machine has
// room there: a server mostly waits for the disk, and the many small files that it makes and
// syncs cost a fourth of the suite's processor time. With TMPDIR and for benchmarks they stay
// where they are.
func InMemory(m *testing.M) Tests { return Tests{m} }

// Run runs the tests and returns the exit code.
func (t Tests) Run() int {
	flag.Parse()
	var fs syscall.Statfs_t
	if flag.Lookup("test.bench").Value.String() != "" || os.Getenv("TMPDIR") != "" || syscall.Statfs(memoryFiles, &fs) != nil ||
		int64(fs.Type) != tmpfs || fs.Flags&noExec != 0 || fs.Bavail*uint64(fs.Bsize) < memoryRoom {
		return t.m.Run()
	}
	const name = "helixd-test-*"
	left, _ := filepath.Glob(filepath.Join(memoryFiles, name))
	for _, dir := range left { // tests that were killed
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp(memoryFiles, name)
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir)); err != nil { // other users' commands have their files below it
		panic(err)
	}
	return t.m.Run()
}
