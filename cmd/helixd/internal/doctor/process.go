package doctor

import (
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
)

// memoryWarning is the memory limit, in bytes, below which a busy daemon may be
// killed.
const memoryWarning = 256 << 20

// memory says what the limit is here.
func (d *exam) memory() {
	limit, from := settings.MemoryLimit()
	if limit <= 0 {
		d.OK(checkMemory, "no limit is known")
		return
	}
	c := doctor.Check{ID: checkMemory, Status: doctor.Healthy, Found: fmt.Sprintf("the memory limit is %d MiB, from %s", limit>>20, from)}
	if limit < memoryWarning {
		c.Status, c.Advice = doctor.Warning, fmt.Sprintf("give the daemon %d MiB or more", memoryWarning>>20)
	}
	d.Report(c)
}

// exposure reports what is unsafe.
func (d *exam) exposure() {
	all := settings.Exposures(d.config)
	for _, e := range all {
		d.Problem(checkExposure, e.Key, e.Found, e.Advice)
	}
	switch {
	case len(all) > 0:
	case settings.IsLoopback(d.config.Listen):
		d.OK(checkExposure, "only this machine reaches %s", d.config.Listen)
	default:
		d.OK(checkExposure, "%s has TLS and authentication", d.config.Listen)
	}
}
