package backup

import (
	"bufio"
	"bytes"
	"io"
)

// Follow says, of a backup that is being written, how many records it has so far. How many
// it will have is not known: the ends of the log's partitions are no number of records,
// since sequences begin anywhere, and erasures and retention have removed some. It reads
// in to its end and checks nothing, so that the writer does not wait for a decoder of
// records.
func Follow(in io.Reader, seen func(records int64)) {
	defer io.Copy(io.Discard, in) // also after an error: the writer waits for a reader
	packed, err := newUnpacker(in)
	if err != nil {
		return
	}
	defer packed.Close()
	lines := bufio.NewReaderSize(packed, 64<<10)
	var records int64
	for begins := true; ; {
		piece, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if begins && bytes.HasPrefix(piece, []byte(`{"record":`)) {
			records++
			seen(records)
		}
		begins = !more
	}
}
