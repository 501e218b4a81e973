// Package paired compares two ways of doing the same things: pass rates and means of pairs, with
// confidence intervals, and how many pairs would be needed to tell the two apart. It also says how
// far two raters agree. All intervals are at 95 %, all needed numbers at 80 % power and a
// two-sided level of 5 %.
package paired

import "math"

const (
	level = 0.95
	power = 0.80
)

// z are the normal quantiles of the level and of the power.
var (
	zLevel = math.Sqrt2 * math.Erfinv(level)
	zPower = math.Sqrt2 * math.Erfinv(2*power-1)
)

// Interval is a confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// needed rounds a number of pairs up; 0 stands for "no number is enough", as when both are alike.
func needed(n float64) int {
	if math.IsNaN(n) || n > math.MaxInt32 {
		return 0
	}
	return max(int(math.Ceil(n)), 1)
}
