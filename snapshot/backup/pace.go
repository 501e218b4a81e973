package backup

import (
	"context"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// MinRate is the least rate of a backup, in bytes a second.
const MinRate = 64 << 10

// CheckRate returns an error if a backup can't have the rate; 0 means no limit.
func CheckRate(bytesPerSecond int64) error {
	if bytesPerSecond != 0 && bytesPerSecond < MinRate {
		return fmt.Errorf("backup: the rate must be at least %d bytes a second, or 0 for no limit", MinRate)
	}
	return nil
}

// maxCredit bounds how much unused time later writes may use.
const maxCredit = time.Second

// pace limits a rate.
type pace struct {
	rate int64     // bytes a second; 0: no limit
	free time.Time // when the next bytes may be written
}

// spend waits until n more bytes may be written.
func (p *pace) spend(ctx context.Context, n int) error {
	if p.rate == 0 {
		return context.Cause(ctx)
	}
	now := time.Now()
	if oldest := now.Add(-maxCredit); p.free.Before(oldest) {
		p.free = oldest
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return eventlog.Sleep(ctx, p.free.Sub(now))
}
