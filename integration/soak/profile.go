//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// cacheMakers allocate what NATS keeps of the blocks of its files.
var cacheMakers = [][]byte{
	[]byte("server.getMsgBlockBuf"), []byte("server.(*msgBlock).loadBlock"), []byte("server.(*msgBlock).setupWriteCache"),
}

// heapOf reads a heap profile of net/http/pprof, as text: the bytes of the heap in
// use, and how many of them are NATS's cache, by the profile's estimate.
func heapOf(profile []byte) (heap, cache float64, err error) {
	heap = math.NaN()
	var rate, count, size float64 // of the profile; of the record, in use
	counted := true
	for line := range bytes.Lines(profile) {
		switch {
		case bytes.HasPrefix(line, []byte("heap profile:")):
			_, at, _ := bytes.Cut(line, []byte("heap/"))
			if _, err := fmt.Sscanf(string(at), "%g", &rate); err != nil {
				return 0, 0, fmt.Errorf("heap profile: %w", err)
			}
			rate /= 2 // as the runtime writes it
		case bytes.HasPrefix(line, []byte("# HeapAlloc = ")):
			if _, err := fmt.Sscanf(string(line), "# HeapAlloc = %g", &heap); err != nil {
				return 0, 0, fmt.Errorf("heap profile: %w", err)
			}
		case bytes.Contains(line, []byte("] @ ")):
			if _, err := fmt.Sscanf(string(line), "%g: %g", &count, &size); err != nil {
				return 0, 0, fmt.Errorf("heap profile: %w", err)
			}
			counted = count == 0
		case !counted && madeHere(line):
			// It is sampled: a small object is seldom met, and stands for many.
			cache += size / (1 - math.Exp(-size/count/rate))
			counted = true
		}
	}
	if math.IsNaN(heap) {
		return 0, 0, errors.New("a heap profile without HeapAlloc")
	}
	return heap, min(cache, heap), nil
}

func madeHere(line []byte) bool {
	for _, f := range cacheMakers {
		if bytes.Contains(line, f) {
			return true
		}
	}
	return false
}
