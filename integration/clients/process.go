package main

import (
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// unknown is what this system does not tell.
var unknown = math.NaN()

// gcTrace is a line that the Go runtime writes at each collection, such as
// "gc 5 @1.2s 3%: … ms cpu, 9->10->5 MB, 10 MB goal, 1 MB stacks, 0 MB globals, 2 P".
var gcTrace = regexp.MustCompile(`->(\d+) MB, \d+ MB goal, (\d+) MB stacks`)

// heapMiB returns what the process's last garbage collection found in use: heap
// and stacks, in MiB.
func heapMiB(logs string) (heap, stacks float64) {
	all := gcTrace.FindAllStringSubmatch(logs, -1)
	if len(all) == 0 {
		return unknown, unknown
	}
	last := all[len(all)-1]
	heap, _ = strconv.ParseFloat(last[1], 64)
	stacks, _ = strconv.ParseFloat(last[2], 64)
	return heap, stacks
}

// cpu is time that cores have spent, in seconds.
type cpu struct {
	daemon, self, all float64
}

// cpuTimes reads what the daemon, this process and the machine have spent.
func cpuTimes(daemon int) cpu {
	return cpu{
		daemon: deployment.Spent(daemon).Seconds(), self: deployment.Spent(os.Getpid()).Seconds(),
		all: machineTicks() * deployment.Tick.Seconds(),
	}
}

// shares returns what each has taken of the machine's cores since before.
func (c cpu) shares(before cpu, span time.Duration) (daemon, self, others float64) {
	cores := span.Seconds() * float64(runtime.NumCPU())
	daemon, self = (c.daemon-before.daemon)/cores, (c.self-before.self)/cores
	return daemon, self, max(0, (c.all-before.all)/cores-daemon-self)
}

// machineTicks is the time of all cores that were not idle.
func machineTicks() float64 {
	stat, err := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if err != nil || len(fields) < 9 {
		return unknown
	}
	return sum(fields[1:4]) + sum(fields[6:9])
}

func sum(fields []string) float64 {
	total := 0.0
	for _, f := range fields {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return unknown
		}
		total += n
	}
	return total
}
