package sqlite

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

const (
	// leastBits is how long a code is at least: short vectors need more bits
	// than they have numbers to be told apart.
	leastBits = 1024
	// codeRounds is how often a vector is mixed before its signs are taken.
	codeRounds = 2
)

// code is the signs of a vector that was turned about: of two vectors, the more
// bits are the same the smaller is their angle. The turn, the same for all,
// spreads what each number says over all bits; without it vectors of mostly
// zeros, and numbers that are never negative, would say nothing.
type code []uint64

// codeOf returns nil for a vector that has no direction.
func codeOf(v []float32) code {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return nil
	}
	n := leastBits
	for n < len(v) {
		n *= 2
	}
	mixed := make([]float32, n)
	for i, x := range v {
		mixed[i] = float32(float64(x) / length)
	}
	for round := range uint64(codeRounds) {
		flip(mixed, round)
		hadamard(mixed)
	}
	c := make(code, n/64)
	for i, x := range mixed {
		if x > 0 {
			c[i/64] |= 1 << (i % 64)
		}
	}
	return c
}

// flip changes signs, always the same ones.
func flip(v []float32, round uint64) {
	rnd := rand.NewPCG(round, uint64(len(v)))
	for i := 0; i < len(v); i += 64 {
		for signs, j := rnd.Uint64(), i; j < i+64; j, signs = j+1, signs>>1 {
			if signs&1 == 1 {
				v[j] = -v[j]
			}
		}
	}
}

// hadamard is the fast Walsh-Hadamard transform: a turn, but for the length.
func hadamard(v []float32) {
	for half := 1; half < len(v); half *= 2 {
		for i := 0; i < len(v); i += 2 * half {
			a, b := v[i:i+half], v[i+half:i+2*half]
			for j := range a {
				a[j], b[j] = a[j]+b[j], a[j]-b[j]
			}
		}
	}
}

func (c code) bytes() []byte {
	b := make([]byte, 0, 8*len(c))
	for _, word := range c {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// nearest returns the places of the most codes that differ least from c, in no
// order. Codes lie one behind the other.
func (c code) nearest(codes []uint64, most int) []int {
	n := len(codes) / len(c)
	if n <= most {
		return slices.Collect(func(yield func(int) bool) {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		})
	}
	differ := make([]uint16, n)
	count := make([]int, 64*len(c)+1) // by how many bits differ
	for i := range differ {
		other := codes[i*len(c):][:len(c)]
		d := 0
		for j, word := range c {
			d += bits.OnesCount64(word ^ other[j])
		}
		differ[i] = uint16(d)
		count[d]++
	}
	far, room := 0, most // all that are nearer than far, and some that are as far
	for room >= count[far] {
		room -= count[far]
		far++
	}
	found := make([]int, 0, most)
	for i := n - 1; i >= 0; i-- { // the newest first
		switch d := int(differ[i]); {
		case d < far:
			found = append(found, i)
		case d == far && room > 0:
			found = append(found, i)
			room--
		}
	}
	return found
}
