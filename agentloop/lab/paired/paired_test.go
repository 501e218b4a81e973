package paired

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The published values of Student's t, both sides 5 %.
func TestQuantileOfStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980, 1e6: 1.960} {
		require.InDelta(t, want, quantile(freedom), 0.0006, freedom)
	}
}

// Student's sleep data (1908), as R's t.test(paired = TRUE) has it.
func TestMeansOfPublishedPairs(t *testing.T) {
	first := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	second := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	m := OfMeans(first, second)
	require.Equal(t, 10, m.Pairs)
	require.InDelta(t, 1.58, m.Change, 1e-12)
	require.InDelta(t, 0.7001142, m.Interval.Low, 1e-6)
	require.InDelta(t, 2.4598858, m.Interval.High, 1e-6)
	require.Equal(t, 5, m.Needed) // (1.960+0.842)²·1.23²/1.58² = 4.76
}

func TestMeansThatAreAlike(t *testing.T) {
	require.Equal(t, Means{}, OfMeans(nil, nil))
	require.Equal(t, Means{Pairs: 2, Baseline: 3, Candidate: 3}, OfMeans([]float64{2, 4}, []float64{2, 4}))
	require.Equal(t, Means{Pairs: 1, Baseline: 2, Candidate: 3, Change: 1, Interval: Interval{1, 1}}, OfMeans([]float64{2}, []float64{3}))
	require.Panics(t, func() { OfMeans([]float64{1}, nil) })
}

// Newcombe (1998) gives for 36, 12, 2, 0 the interval 0.0569 to 0.3404.
func TestRatesOfPublishedPairs(t *testing.T) {
	r := OfRates(36, 2, 12, 0)
	require.Equal(t, 50, r.Pairs)
	require.InDelta(t, 0.20, r.Change, 1e-12)
	require.InDelta(t, 0.0569, r.Interval.Low, 0.00006)
	require.InDelta(t, 0.3404, r.Interval.High, 0.00006)
	require.InDelta(t, 0.0129, r.P, 0.00006) // 2·(1+14+91)/2^14
	mirrored := OfRates(36, 12, 2, 0)
	require.InDelta(t, -r.Interval.High, mirrored.Interval.Low, 1e-12)
	require.InDelta(t, -r.Interval.Low, mirrored.Interval.High, 1e-12)
}

func TestRatesThatAreAlike(t *testing.T) {
	require.Equal(t, Rates{P: 1}, OfRates(0, 0, 0, 0))
	r := OfRates(100, 0, 0, 0)
	require.Equal(t, []float64{1, 1, 0, 1}, []float64{r.Baseline, r.Candidate, r.Change, r.P})
	require.Zero(t, r.Needed)
	require.InDelta(t, -r.Interval.Low, r.Interval.High, 1e-12)
	require.InDelta(t, 0.037, r.Interval.High, 0.0005) // Wilson's of 100 in 100
	require.InDelta(t, 1, OfRates(0, 2000, 2000, 0).P, 1e-9)
}

// The needed number of pairs has the power that it promises: summed over every way that the pairs
// may part.
func TestNeededHasItsPower(t *testing.T) {
	for _, c := range []struct{ both, baseline, candidate, neither int }{{60, 10, 30, 0}, {20, 5, 15, 60}} {
		r := OfRates(c.both, c.baseline, c.candidate, c.neither)
		n := r.Needed
		pb, pc := float64(c.baseline)/float64(r.Pairs), float64(c.candidate)/float64(r.Pairs)
		power := 0.0
		for b := range n + 1 {
			for d := range n - b + 1 {
				if parts := float64(b + d); parts == 0 || float64((b-d)*(b-d))/parts < 3.8415 {
					continue
				}
				l := func(k int) float64 { v, _ := math.Lgamma(float64(k + 1)); return v }
				power += math.Exp(l(n) - l(b) - l(d) - l(n-b-d) + float64(b)*math.Log(pb) + float64(d)*math.Log(pc) + float64(n-b-d)*math.Log(1-pb-pc))
			}
		}
		require.InDelta(t, 0.80, power, 0.03, "%d pairs", n)
	}
}

// The example of Cohen's kappa that text books give: 20, 5, 10, 15.
func TestKappaOfPublishedRatings(t *testing.T) {
	g := OfRaters(20, 5, 10, 15)
	require.InDelta(t, 0.70, g.Share, 1e-12)
	require.InDelta(t, 0.40, g.Kappa, 1e-12)
	require.Less(t, g.Interval.Low, 0.40)
	require.InDelta(t, 1, OfRaters(5, 0, 0, 5).Kappa, 1e-12)
	require.Zero(t, OfRaters(9, 0, 0, 0).Kappa)
	require.Equal(t, Agreement{}, OfRaters(0, 0, 0, 0))
}
