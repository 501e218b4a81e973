package settings

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryShare is how much of the available memory Go's runtime may use before it
// collects garbage more often.
const memoryShare = 0.9

// MemoryLimit returns the memory limit of Go's runtime, in bytes, and where it
// comes from: GOMEMLIMIT, otherwise a share of the memory of the cgroup or the machine. 0:
// neither is known.
func MemoryLimit() (limit int64, from string) {
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

// LimitMemory sets the memory limit of Go's runtime.
func LimitMemory() {
	if limit, _ := MemoryLimit(); limit > 0 {
		debug.SetMemoryLimit(limit)
	}
}
