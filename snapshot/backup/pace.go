package backup

import (
	"context"
	"fmt"
	"time"
)

// MinRate is the least rate of a backup, in bytes a second.
const MinRate = 64 << 10

// CheckRate refuses a rate that a backup can't have; 0 means as fast as it can.
func CheckRate(bytesPerSecond int64) error {
	if bytesPerSecond != 0 && bytesPerSecond < MinRate {
		return fmt.Errorf("backup: the rate must be at least %d bytes a second, or 0 for no limit", MinRate)
	}
	return nil
}

// maxCredit is how much time that was not used may be caught up with.
const maxCredit = time.Second

// pace holds a rate.
type pace struct {
	rate int64     // bytes a second; 0: none
	free time.Time // from when on the next bytes may go
}

// spend waits until so many bytes more may go.
func (p *pace) spend(ctx context.Context, n int) error {
	if p.rate == 0 {
		return context.Cause(ctx)
	}
	now := time.Now()
	if oldest := now.Add(-maxCredit); p.free.Before(oldest) {
		p.free = oldest
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	wait := time.NewTimer(p.free.Sub(now))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
