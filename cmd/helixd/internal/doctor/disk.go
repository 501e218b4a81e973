package doctor

import (
	"fmt"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
)

// How much room a disk should have, in bytes: with less, a busy daemon may
// fill it before anybody looks, or at once.
const (
	roomWarning = 1 << 30
	roomProblem = 128 << 20
)

// disk checks how much room is left for the data folder, if the operating system can say.
func (d *exam) disk(dir string) {
	free, ok := embed.FreeBytes(existingParent(dir))
	if !ok {
		return
	}
	c := doctor.Check{ID: checkDisk, Status: doctor.Healthy, Found: fmt.Sprintf("%.1f GiB are free for %s", float64(free)/(1<<30), dir)}
	least := max(roomProblem, uint64(d.config.Disk.MinFree)) // with less it is read-only
	switch {
	case free < least:
		c.Status = doctor.Problem
	case free < max(roomWarning, 2*least):
		c.Status = doctor.Warning
	}
	if c.Status != doctor.Healthy {
		c.Target, c.Advice = dir, fmt.Sprintf("make room on the disk of %s, move dataDir to another, or remove old sessions: helixd retain", dir)
	}
	d.Report(c)
}
