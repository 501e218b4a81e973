package doctor

import (
	"fmt"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// How much room a disk should have, in bytes: with less, a busy daemon may
// fill it before anybody looks, or at once.
const (
	roomDoubtful = 1 << 30
	roomIll      = 128 << 20
)

// disk looks how much room is left for the data folder, where the system tells.
func (d *doctor) disk(dir string) {
	free, ok := embed.FreeBytes(existingParent(dir))
	if !ok {
		return
	}
	c := jetstream.Check{ID: checkDisk, Status: jetstream.Healthy, Found: fmt.Sprintf("%.1f GiB are free for %s", float64(free)/(1<<30), dir)}
	least := max(roomIll, uint64(d.config.Disk.MinFree)) // with less it is read-only
	switch {
	case free < least:
		c.Status = jetstream.Ill
	case free < max(roomDoubtful, 2*least):
		c.Status = jetstream.Doubtful
	}
	if c.Status != jetstream.Healthy {
		c.Target, c.Advice = dir, fmt.Sprintf("make room on the disk of %s, move dataDir to another, or remove old sessions: helixd retain", dir)
	}
	d.out.add(c)
}
