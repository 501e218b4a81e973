package deployment

import (
	"os"
	"slices"
	"strings"
	"time"
)

// Samples are measured times, in any order.
type Samples []time.Duration

// At returns a quantile, 0 to 1. It sorts.
func (s Samples) At(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

// LoadAverage is the machine's, over one, five and fifteen minutes.
func LoadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
