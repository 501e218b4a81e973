package main

import (
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// memoryDoubtful is the memory limit, in bytes, below which a busy daemon may be
// killed.
const memoryDoubtful = 256 << 20

// memory tells what the limit is here.
func (d *doctor) memory() {
	limit, from := settings.MemoryLimit()
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

// exposure reports what is unsafe.
func (d *doctor) exposure() {
	all := settings.Exposures(d.config)
	for _, e := range all {
		d.problem(checkExposure, e.Key, e.Found, e.Advice)
	}
	switch {
	case len(all) > 0:
	case settings.IsLoopback(d.config.Listen):
		d.ok(checkExposure, "only this machine reaches %s", d.config.Listen)
	default:
		d.ok(checkExposure, "%s has TLS and authentication", d.config.Listen)
	}
}
