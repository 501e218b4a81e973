package main

import (
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/helixd/helixd/eventlog/jetstream"
)

const (
	// memoryShare is how much of the memory that there is Go's runtime may use
	// before it collects garbage more often.
	memoryShare = 0.9
	// memoryDoubtful is with how much a busy daemon may be killed.
	memoryDoubtful = 256 << 20
)

// memoryLimit returns the memory limit of Go's runtime, in bytes, and where it
// comes from: GOMEMLIMIT, else a share of what the cgroup or the machine has. 0:
// neither says.
func memoryLimit() (limit int64, from string) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return debug.SetMemoryLimit(-1), "GOMEMLIMIT"
	}
	most := uint64(math.MaxInt64)
	for name, provider := range map[string]memlimit.Provider{"the cgroup": memlimit.FromCgroup, "the machine": memlimit.FromSystem} {
		if n, err := provider(); err == nil && n > 0 && n < most {
			most, from = n, name
		}
	}
	if from == "" {
		return 0, ""
	}
	return int64(memoryShare * float64(most)), from
}

// limitMemory sets the memory limit of Go's runtime.
func limitMemory() {
	if limit, _ := memoryLimit(); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}

// memory tells what the limit is here.
func (d *doctor) memory() {
	limit, from := memoryLimit()
	if limit <= 0 {
		d.ok(checkMemory, "no limit is known")
		return
	}
	c := jetstream.Check{ID: checkMemory, Status: jetstream.Healthy, Found: fmt.Sprintf("the memory limit is %d MiB, from %s", limit>>20, from)}
	if limit < memoryDoubtful {
		c.Status, c.Advice = jetstream.Doubtful, fmt.Sprintf("give the daemon %d MiB or more", memoryDoubtful>>20)
	}
	d.out.add(c)
}
