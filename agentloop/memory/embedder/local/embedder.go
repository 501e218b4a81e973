// Package local computes embeddings without a model: by feature hashing, of a
// text's words, their neighbourhood and their spelling.
//
// It promises that the same text has the same vector everywhere, that texts
// with words or parts of words in common are near, and that it never fails and
// sends nothing anywhere. It does not promise to know what words mean: "dog"
// and "puppy" are strangers to it. It is for tests, for demonstrations, and for
// where nothing may leave the machine.
package local

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel/words"
)

// DefaultDimensions is how many numbers a vector has.
const DefaultDimensions = 256

// algorithm is named in what models are called: a change of what is computed is
// another one.
const algorithm = "helixd-hash-1"

// Weights of features. A word weighs more the longer it is, up to fullLength
// characters: those that all texts share are short.
const (
	fullLength    = 8
	loneWeight    = 0.5 // of a word of one character, of a script without spaces
	pairWeight    = 0.5 // of two neighbours, of the lighter one's
	spelledWeight = 0.7 // of a word's trigrams together, of the word's
)

// Embedder computes vectors. It is safe for concurrent use.
type Embedder struct{ dimensions int }

// New returns an embedder of vectors of so many numbers, 1 to
// fact.MaxDimensions, or 0 for DefaultDimensions. It panics on others.
func New(dimensions int) *Embedder {
	if dimensions == 0 {
		dimensions = DefaultDimensions
	}
	if dimensions < 1 || dimensions > fact.MaxDimensions {
		panic(fmt.Sprintf("local: a vector has 1 to %d dimensions, not %d", fact.MaxDimensions, dimensions))
	}
	return &Embedder{dimensions}
}

// Model names the algorithm and the dimensions.
func (e *Embedder) Model() string { return fmt.Sprintf("%s-%d", algorithm, e.dimensions) }

// Embed returns a vector of unit length for each text. Its error is ctx's.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		vectors[i] = e.vector(text)
	}
	return vectors, nil
}

// Kinds of features.
const (
	word    = 'w'
	pair    = 'p'
	trigram = 't'
	whole   = 'a'
)

func (e *Embedder) vector(text string) []float32 {
	s := sum{numbers: make([]float64, e.dimensions), seen: map[uint64]int{}}
	last, lastWeight := "", 0.0
	for _, w := range words.Of(text) {
		weight := weightOf(w)
		s.add(word, w, weight)
		if last != "" {
			s.add(pair, last+" "+w, pairWeight*min(weight, lastWeight))
		}
		s.spell(w, spelledWeight*weight)
		last, lastWeight = w, weight
	}
	return s.unit(text)
}

func weightOf(w string) float64 {
	n := utf8.RuneCountInString(w)
	if n == 1 && len(w) > 1 {
		return loneWeight
	}
	return float64(min(n, fullLength)) / fullLength
}

// sum adds features up.
type sum struct {
	numbers []float64
	seen    map[uint64]int // how often, by hash
}

// add adds a feature to one of the numbers, or takes it off, as its hash says:
// features that fall together cancel each other out on average. The second time
// counts less than the first.
func (s *sum) add(kind byte, feature string, weight float64) {
	h := hash(kind, feature)
	n := s.seen[h]
	s.seen[h]++
	weight *= math.Sqrt(float64(n+1)) - math.Sqrt(float64(n))
	if h>>63 == 1 {
		weight = -weight
	}
	s.numbers[h%uint64(len(s.numbers))] += weight
}

// spell adds the trigrams of a word, its ends included, which weigh as much as
// given together.
func (s *sum) spell(w string, weight float64) {
	letters := []rune("^" + w + "$")
	n := len(letters) - 2
	for i := range n {
		s.add(trigram, string(letters[i:i+3]), weight/math.Sqrt(float64(n)))
	}
}

// unit returns the vector of length 1. A text without words is near to itself
// only.
func (s *sum) unit(text string) []float32 {
	length := s.length()
	if length == 0 {
		clear(s.seen)
		s.add(whole, text, 1)
		length = s.length()
	}
	vector := make([]float32, len(s.numbers))
	for i, x := range s.numbers {
		vector[i] = float32(x / length)
	}
	return vector
}

func (s *sum) length() float64 {
	var squares float64
	for _, x := range s.numbers {
		squares += float64(x * x) // converted, so that no processor fuses it with the sum
	}
	return math.Sqrt(squares)
}

// hash is FNV-1a with the finalizer of MurmurHash3, which spreads it over all
// bits.
func hash(kind byte, feature string) uint64 {
	h := (uint64(14695981039346656037) ^ uint64(kind)) * 1099511628211
	for i := range len(feature) {
		h = (h ^ uint64(feature[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
