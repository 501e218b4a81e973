package backup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Follow says, of a backup that is being written, how many records it has so far, and how
// many it can have at most: as many as the log has ever had. Erasures and retention have
// removed some. It reads in to its end and checks nothing, so that the writer does not
// wait for a decoder of records.
func Follow(in io.Reader, seen func(records, most int64)) {
	defer io.Copy(io.Discard, in) // also after an error: the writer waits for a reader
	packed, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return
	}
	defer packed.Close()
	lines := bufio.NewReaderSize(packed, 64<<10)
	head, err := lines.ReadBytes('\n')
	var l line
	if err != nil || json.Unmarshal(head, &l) != nil || l.Backup == nil {
		return
	}
	var records, most int64
	for _, end := range l.Backup.Ends {
		most += int64(end)
	}
	for begins := true; ; {
		piece, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		if begins && bytes.HasPrefix(piece, []byte(`{"record":`)) {
			records++
			seen(records, most)
		}
		begins = !more
	}
}
