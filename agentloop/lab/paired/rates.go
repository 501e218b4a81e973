package paired

import "math"

// Rates compares how often two sides passed the same cases.
type Rates struct {
	Pairs     int     `json:"pairs"`
	Baseline  float64 `json:"baseline"`  // share that passed, 0 to 1
	Candidate float64 `json:"candidate"` // share that passed, 0 to 1
	// Change is Candidate less Baseline, and Interval its confidence interval.
	Change   float64  `json:"change"`
	Interval Interval `json:"interval"`
	// P is the p-value of McNemar's exact test: how likely sides that are alike part so far.
	P float64 `json:"p"`
	// Needed is the number of pairs with which a change of this size would be found; 0 without one.
	Needed int `json:"needed"`
}

// OfRates compares pairs by their numbers: both passed, only the baseline, only the candidate,
// neither.
//
// The interval is Newcombe's square-and-add interval for paired proportions (Statistics in
// Medicine 17, 1998, method 10), the number Connor's (Biometrics 43, 1987).
func OfRates(both, baseline, candidate, neither int) Rates {
	n := float64(both + baseline + candidate + neither)
	if n == 0 {
		return Rates{P: 1}
	}
	a, b, c, d := float64(both), float64(candidate), float64(baseline), float64(neither)
	p1, p2 := (a+b)/n, (a+c)/n
	w1, w2 := wilson(p1, n), wilson(p2, n)
	phi := 0.0
	if margins := (a + b) * (c + d) * (a + c) * (b + d); margins > 0 {
		covariance := a*d - b*c
		if covariance > 0 {
			covariance = max(covariance-n/2, 0)
		}
		phi = covariance / math.Sqrt(margins)
	}
	add := func(x, y float64) float64 { return math.Sqrt(max(x*x-2*phi*x*y+y*y, 0)) }
	change := p1 - p2
	split, gap := (b+c)/n, (b-c)/n
	r := Rates{
		Pairs: int(n), Baseline: p2, Candidate: p1, Change: change,
		Interval: Interval{change - add(p1-w1.Low, w2.High-p2), change + add(w1.High-p1, p2-w2.Low)},
		P:        mcnemar(baseline, candidate),
	}
	if gap != 0 {
		x := zLevel*math.Sqrt(split) + zPower*math.Sqrt(max(split-gap*gap, 0))
		r.Needed = needed(x * x / (gap * gap))
	}
	return r
}

// wilson is the score interval of a proportion.
func wilson(p, n float64) Interval {
	z2 := zLevel * zLevel
	middle, half := 2*n*p+z2, zLevel*math.Sqrt(z2+4*n*p*(1-p))
	return Interval{(middle - half) / (2 * (n + z2)), (middle + half) / (2 * (n + z2))}
}

// mcnemar is the two-sided p-value of McNemar's exact test on the pairs that part.
func mcnemar(b, c int) float64 {
	n := b + c
	term, sum := -float64(n)*math.Ln2, 0.0 // the logarithm of P(0)
	for i := range min(b, c) + 1 {
		if i > 0 {
			term += math.Log(float64(n-i+1)) - math.Log(float64(i))
		}
		sum += math.Exp(term)
	}
	return min(2*sum, 1)
}
