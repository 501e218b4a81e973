package paired

import "math"

// Means compares a measure of the same cases on two sides.
type Means struct {
	Pairs     int     `json:"pairs"`
	Baseline  float64 `json:"baseline"`
	Candidate float64 `json:"candidate"`
	// Change is the mean of candidate less baseline, and Interval Student's confidence interval of
	// it; of fewer than two pairs it is the change alone.
	Change   float64  `json:"change"`
	Interval Interval `json:"interval"`
	// Needed is the number of pairs with which a change of this size would be found; 0 without one.
	Needed int `json:"needed"`
}

// OfMeans compares the pairs baseline[i], candidate[i]. It panics if there is not a candidate for
// each baseline.
func OfMeans(baseline, candidate []float64) Means {
	if len(baseline) != len(candidate) {
		panic("paired: a pair lacks a side")
	}
	n := float64(len(baseline))
	if n == 0 {
		return Means{}
	}
	m := Means{Pairs: len(baseline)}
	for i := range baseline {
		m.Baseline += baseline[i] / n
		m.Candidate += candidate[i] / n
		m.Change += (candidate[i] - baseline[i]) / n
	}
	m.Interval = Interval{m.Change, m.Change}
	if n < 2 {
		return m
	}
	squares := 0.0
	for i := range baseline {
		off := candidate[i] - baseline[i] - m.Change
		squares += off * off
	}
	deviation := math.Sqrt(squares / (n - 1))
	half := quantile(n-1) * deviation / math.Sqrt(n)
	m.Interval = Interval{m.Change - half, m.Change + half}
	if m.Change != 0 {
		x := (zLevel + zPower) * deviation / m.Change
		m.Needed = needed(x * x)
	}
	return m
}

// quantile is the value that Student's t with so many degrees of freedom exceeds, on both sides
// together, in 5 % of cases. It halves an interval until it has the closest float.
func quantile(freedom float64) float64 {
	low, high := 0.0, 13.0 // with one degree of freedom it is 12.7
	for {
		t := (low + high) / 2
		if t == low || t == high {
			return t
		}
		if beyond(t, freedom) > 1-level {
			low = t
		} else {
			high = t
		}
	}
}

// beyond is the probability that |t| is larger: the regularized incomplete beta function of
// x = f/(f+t²) at (f/2, 1/2).
func beyond(t, f float64) float64 {
	x, a, b := f/(f+t*t), f/2, 0.5
	if x >= 1 {
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	if x < (a+1)/(a+b+2) {
		return front * fraction(x, a, b) / a
	}
	return 1 - front*fraction(1-x, b, a)/b
}

// fraction is the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's
// method.
func fraction(x, a, b float64) float64 {
	const tiny = 1e-300
	nonzero := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/nonzero(1-(a+b)*x/(a+1))
	f := d
	for m := 1.0; m < 1000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		for _, k := range []float64{even, odd} {
			d = 1 / nonzero(1+k*d)
			c = nonzero(1 + k/c)
			f *= c * d
		}
		if math.Abs(c*d-1) < 1e-15 {
			break
		}
	}
	return f
}
