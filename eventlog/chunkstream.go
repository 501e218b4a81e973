package eventlog

import "iter"

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
