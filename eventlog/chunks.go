package eventlog

import (
	"iter"
	"strings"
)

// StoredChunk is a chunk with its sequence. The chunk must not be changed.
type StoredChunk struct {
	Chunk    Chunk
	Sequence uint64
}

// Stream is a lazy stream of chunks; an error is last.
type Stream = iter.Seq2[StoredChunk, error]

// Chunks returns the chunks among records, decoded. A record that is not a
// chunk is left out; one that can't be decoded is an error.
func Chunks(records iter.Seq2[Record, error]) Stream {
	return func(yield func(StoredChunk, error) bool) {
		for r, err := range records {
			if err == nil && r.Kind != KindChunk {
				continue
			}
			var c Chunk
			if err == nil {
				c, err = r.Chunk()
			}
			if err != nil {
				yield(StoredChunk{}, err)
				return
			}
			if !yield(StoredChunk{Chunk: c, Sequence: r.Sequence}, nil) {
				return
			}
		}
	}
}

// CollectText returns the text of all text deltas.
func CollectText(s Stream) (string, error) {
	var b strings.Builder
	for c, err := range s {
		if err != nil {
			return b.String(), err
		}
		if d, ok := c.Chunk.(*TextDelta); ok {
			b.WriteString(d.Delta)
		}
	}
	return b.String(), nil
}

// CollectAll returns all chunks.
func CollectAll(s Stream) ([]StoredChunk, error) {
	var all []StoredChunk
	for c, err := range s {
		if err != nil {
			return all, err
		}
		all = append(all, c)
	}
	return all, nil
}
