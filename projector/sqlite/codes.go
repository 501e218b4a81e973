package sqlite

import (
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

const (
	// codeBits is how long a code is, however long the vector: to tell 100 of
	// 100,000 that are near takes no more.
	codeBits = 1024
	// codeRounds is how often a vector is mixed before its signs are taken.
	codeRounds = 2
)

// code is the signs of a vector that was turned about: of two vectors, the more
// bits are the same the smaller is their angle. The turn, the same for all,
// spreads what each number says over all bits; without it vectors of mostly
// zeros, and numbers that are never negative, would say nothing.
type code [codeBits / 64]uint64

// codeOf returns nil for a vector that has no direction.
func codeOf(v []float32) *code {
	if v = turned(v); v == nil {
		return nil
	}
	c := signs(v)
	return &c
}

// turned returns the codeBits numbers of which a code is the signs; nil if the
// vector has no direction.
func turned(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return nil
	}
	n := codeBits
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
	return mixed[:codeBits]
}

func signs(v []float32) (c code) {
	for i, x := range v {
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

func (c *code) append(b []byte) []byte {
	for _, word := range c {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// A row of codes is a block: those of vectors whose numbers are about the same,
// by number, since to read many rows takes longer than to read many codes.
const (
	blockVectors = 64
	codeBytes    = 8 + codeBits/8 // with the vector's number
)

// codeEntry is what a block has of a vector.
func codeEntry(vector int64, c *code) []byte {
	return c.append(binary.LittleEndian.AppendUint64(make([]byte, 0, codeBytes), uint64(vector)))
}

// blockEntries yields the vectors that a block has, and what it has of them.
func blockEntries(block []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for entry := range slices.Chunk(block, codeBytes) {
			if len(entry) == codeBytes && !yield(int64(binary.LittleEndian.Uint64(entry)), entry) {
				return
			}
		}
	}
}

// entryCode is the inverse of codeEntry.
func entryCode(entry []byte) (c code) {
	for i := range c {
		c[i] = binary.LittleEndian.Uint64(entry[8*(i+1):])
	}
	return c
}

// roughCodes is how many codes that differ least are looked at more closely,
// for each vector that is wanted.
const roughCodes = 8

// question is a vector that codes are compared with.
type question struct {
	code code
	// parts says, for each four bits of a code, what each value of them adds to
	// the cosine, about.
	parts [codeBits / 4][16]float32
}

// questionOf returns nil for a vector that has no direction.
func questionOf(v []float32) *question {
	v = turned(v)
	if v == nil {
		return nil
	}
	q := &question{code: signs(v)}
	for i := range q.parts {
		for value := range q.parts[i] {
			for bit, x := range v[4*i : 4*i+4] {
				if value>>bit&1 == 0 {
					x = -x
				}
				q.parts[i][value] += x
			}
		}
	}
	return q
}

// nearest returns the places of about the most vectors that are nearest by
// their codes, but for some. To count the bits that differ is quick, and to
// weigh them tells more.
func (q *question) nearest(codes []code, most int, without map[int]bool) []int {
	found := q.code.nearest(codes, roughCodes*most+len(without))
	found = slices.DeleteFunc(found, func(place int) bool { return without[place] })
	if len(found) <= most {
		return found
	}
	weighed := make([]ranked, len(found))
	for i, place := range found {
		weighed[i] = ranked{int64(place), float64(q.cosine(&codes[place]))}
	}
	slices.SortFunc(weighed, better)
	for i, w := range weighed[:most] {
		found[i] = int(w.id)
	}
	return found[:most]
}

// cosine is about that with the vector of a code, but for a factor.
func (q *question) cosine(c *code) (sum float32) {
	for i, word := range c {
		for j := range 16 {
			sum += q.parts[16*i+j][word>>(4*j)&15]
		}
	}
	return sum
}

// nearest returns the places of the most codes that differ least, the last one
// first.
func (c *code) nearest(codes []code, most int) []int {
	most = min(most, len(codes))
	differ := make([]uint16, len(codes))
	var count [codeBits + 1]int // by how many bits differ
	for i := range codes {
		d := 0
		for j, word := range &codes[i] {
			d += bits.OnesCount64(word ^ c[j])
		}
		differ[i] = uint16(d)
		count[d]++
	}
	far, room := 0, most // all that are nearer than far, and some that are as far
	for far < len(count) && room >= count[far] {
		room -= count[far]
		far++
	}
	found := make([]int, 0, most)
	for i := len(codes) - 1; i >= 0; i-- { // the newest first
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
