package local

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Fields of /proc/<pid>/stat after the name.
const (
	fieldState  = 0
	fieldParent = 1
	fieldPages  = 21
)

// descendants returns all living processes that descend from this one, by the
// numbers that /proc has for them, and the memory that is resident for them, in
// bytes; what two of them share counts twice.
func descendants() (all []int, memory int64, err error) {
	own, err := os.Readlink("/proc/self")
	if err != nil {
		return nil, 0, err
	}
	self, err := strconv.Atoi(own)
	if err != nil {
		return nil, 0, err
	}
	d, err := os.Open("/proc")
	if err != nil {
		return nil, 0, err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	if err != nil {
		return nil, 0, err
	}
	children := map[int][]int{}
	pages := map[int]int64{}
	zombies := map[int]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil { // it has ended
			continue
		}
		// pid (name) state parent ...: a name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) <= fieldPages {
			continue
		}
		parent, err := strconv.Atoi(string(fields[fieldParent]))
		if err != nil {
			continue
		}
		children[parent] = append(children[parent], pid)
		zombies[pid] = fields[fieldState][0] == 'Z'
		pages[pid], _ = strconv.ParseInt(string(fields[fieldPages]), 10, 64) // it is a number
	}
	for next := children[self]; len(next) > 0; {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		if !zombies[pid] {
			all = append(all, pid)
			memory += pages[pid] * int64(os.Getpagesize())
		}
	}
	return all, memory, nil
}

// threadsOf returns how many threads the user has as whom a command is to run.
func threadsOf(j job) (n uint64) {
	uid := os.Geteuid()
	if j.UID != nil {
		uid = *j.UID
	}
	threads, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*") // what can't be read is another's
	for _, name := range threads {
		var s unix.Stat_t
		if unix.Lstat(name, &s) == nil && int(s.Uid) == uid {
			n++
		}
	}
	return n
}

// endAll ends all descendants, which are adopted by this process when their
// parents die. First all are stopped, so that none begins others meanwhile.
func endAll(dead <-chan struct{}) {
	stopped := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		all, _, _ := descendants()
		for _, pid := range all {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
	}
	for {
		all, _, _ := descendants()
		for _, pid := range all {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-dead:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
