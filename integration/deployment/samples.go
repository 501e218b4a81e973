package deployment

import (
	"os"
	"path/filepath"
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

// MS is At in milliseconds.
func (s Samples) MS(q float64) float64 { return float64(s.At(q)) / 1e6 }

// SyncCost measures small synced writes into a folder. If they take nearly nothing, the
// folder is not on a disk, and no figure of a durability with fsync means anything.
func SyncCost(dir string) (took Samples, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	for range 200 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4<<10)); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
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
