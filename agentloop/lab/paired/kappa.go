package paired

import "math"

// Agreement says how far two raters agree on passes and failures.
type Agreement struct {
	Rated int `json:"rated"`
	// Share is the share on which both agree, 0 to 1.
	Share float64 `json:"share"`
	// Kappa is Cohen's kappa: 1 for perfect agreement, 0 for that of chance.
	Kappa    float64  `json:"kappa"`
	Interval Interval `json:"interval"`
}

// OfRaters counts two raters' agreement: both pass, only the first, only the second, neither. If
// both give every case the same rating, chance explains all, and Kappa is 0.
func OfRaters(both, first, second, neither int) Agreement {
	n := float64(both + first + second + neither)
	if n == 0 {
		return Agreement{}
	}
	a, b, c, d := float64(both)/n, float64(first)/n, float64(second)/n, float64(neither)/n
	share := a + d
	chance := (a+b)*(a+c) + (c+d)*(b+d)
	g := Agreement{Rated: int(n), Share: share, Interval: Interval{-1, 1}}
	if chance < 1 {
		g.Kappa = (share - chance) / (1 - chance)
		half := zLevel * math.Sqrt(share*(1-share)/n) / (1 - chance)
		g.Interval = Interval{max(g.Kappa-half, -1), min(g.Kappa+half, 1)}
	}
	return g
}
