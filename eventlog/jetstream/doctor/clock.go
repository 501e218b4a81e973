package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// SkewWarning and SkewProblem are the differences between clocks that are reported: times
// of records, of deadlines and of claims are the server's and the node's.
const (
	SkewWarning = time.Second
	SkewProblem = 30 * time.Second
)

// clockReading is how far a server's clock is ahead of this machine's, with an error.
type clockReading struct {
	server       string
	ahead, error time.Duration
}

// readClock records the time that a server answered between two local times.
func (x *exam) readClock(server string, at, asked, came time.Time) {
	if at.IsZero() {
		return
	}
	half := came.Sub(asked) / 2
	r := clockReading{server: server, ahead: at.Sub(asked.Add(half)), error: half}
	for i, old := range x.times {
		if old.server == server {
			if r.error < old.error {
				x.times[i] = r
			}
			return
		}
	}
	x.times = append(x.times, r)
}

// clock compares the local clock with the servers'.
func (x *exam) clock(context.Context) error {
	worst, bad := time.Duration(0), false
	var names []string
	for _, r := range x.times {
		apart := r.ahead.Abs()
		worst = max(worst, apart)
		names = append(names, r.server)
		sure := apart - r.error // the delay may have been in one direction only
		if sure <= SkewWarning {
			continue
		}
		bad = true
		direction := "ahead of"
		if r.ahead < 0 {
			direction = "behind"
		}
		c := Check{
			ID: CheckClock, Status: Warning, Target: r.server,
			Found:  fmt.Sprintf("the clock of server %s is %s %s this machine's", r.server, apart.Round(time.Millisecond), direction),
			Advice: fmt.Sprintf("set the clocks of this machine and of server %s by NTP (chronyd, systemd-timesyncd): time-outs and the times of records depend on both", r.server),
		}
		if sure > SkewProblem {
			c.Status = Problem
		}
		x.Report(c)
	}
	switch {
	case len(names) == 0:
		x.OK(CheckClock, "not known: no stream and no server reports the time")
	case !bad:
		slices.Sort(names)
		x.OK(CheckClock, "within %s of %s", max(worst.Round(time.Millisecond), time.Millisecond), listing(names))
	}
	return nil
}
